"""The results of a session: those of trials, their cells, gates as tests, the session's report."""

from __future__ import annotations

import platform
import posixpath
from collections import defaultdict
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from importlib.metadata import version
from itertools import groupby
from pathlib import Path
from typing import Any, Literal

import pytest

from pytest_upskill.cases.source.document import BadFile
from pytest_upskill.figures.cell import Cell, with_places
from pytest_upskill.figures.gate import Gate
from pytest_upskill.project.messages import safe, safe_line
from pytest_upskill.report.document import Session
from pytest_upskill.report.junit import gate_properties
from pytest_upskill.session.settings import Settings
from pytest_upskill.trials.digests import judge_name
from pytest_upskill.trials.needs import skip_reasons
from pytest_upskill.trials.result import CellKey, CellLabels, SkippedCase, TrialRecord, Unmeasured
from pytest_upskill.trials.trial import Arm


@dataclass(slots=True)
class Records:
    """Results of trials, and skipped cases with the reason."""

    trials: dict[tuple[str, str, str, Arm], TrialRecord] = field(default_factory=dict)
    """By case file, case, model and arm; if a trial is rerun, the last attempt counts."""
    skipped: dict[tuple[CellKey, str], str] = field(default_factory=dict)
    """The reason by cell and id of the case."""
    failures: int = 0
    """Number of failed reports of trials and gates."""
    other_tests: int = 0
    """Number of other tests that ran."""

    @property
    def measured(self) -> list[TrialRecord]:
        """The trials in which something was checked."""
        return [record for record in self.trials.values() if record.result.planned]

    def skip_reasons(self) -> Iterable[str]:
        """Return why cases were skipped, on every model for which they were to run."""
        cells = ((key, case, reason) for (key, case), reason in self.skipped.items())
        return skip_reasons(
            (((key.path, case, key.chooses), reason) for key, case, reason in cells),
            {(each.path, each.result.case, each.cell_key.chooses) for each in self.measured},
        )

    def add(self, report: pytest.TestReport) -> None:
        """Record what a report says of a trial."""
        if skipped := getattr(report, "upskill_skipped", None):
            cell_fields, case = skipped
            self.skipped[CellKey(*cell_fields), case] = _reason(report)
        if not hasattr(report, "upskill"):
            self.other_tests += report.when == "call"
            return
        record = report.upskill
        if record is None:  # a gate, or a trial that could not begin
            self.failures += report.failed and report.when == "call"
            return
        result = record.result
        if report.failed:
            self.failures += result.failed or report.when == "setup"
        elif result.failed:
            record = replace(record, result=replace(result, excused=True))
        self.trials[record.path, result.case, result.model, result.arm] = record


def cells_of(records: Records, settings: Settings, root: Path) -> list[Cell]:
    """Return the cells in the order of case files and chosen models, those of lifts first.

    Args:
        records: Results of the session's trials.
        settings: Values of all options.
        root: Folder that the paths of case files are relative to.
    """
    model_order = {model.label: index for index, model in enumerate(settings.models)}
    in_order = sorted(
        records.trials.values(),
        key=lambda record: (
            record.cell_key.chooses,
            record.path,
            model_order[record.result.model],
            record.index,
        ),
    )
    cells = []
    for key, group in groupby(in_order, key=lambda record: record.cell_key):
        trials = list(group)
        if len(trials) == trials[0].planned and not any(each.result.planned for each in trials):
            continue
        first = trials[0]
        cell = Cell(
            path=first.path,
            case_file=posixpath.normpath(posixpath.join(settings.rootdir, first.path)),
            skill=first.result.skill,
            model=first.result.model,
            resolved=first.result.resolved,
            gate=first.gate,
            planned=first.planned,
            ref=first.ref,
            history=first.history,
            past_unknown=first.past_unknown,
            case_changes=first.case_changes,
            skipped=tuple(sorted(case for each, case in records.skipped if each == key)),
            trials=tuple(record.result for record in trials),
            at_k=settings.at_k,
            judge="" if key.chooses or settings.judge is None else judge_name(settings.judge),
        )
        cells.append(replace(cell, labels=_labels(cell, root)))
    return with_places(cells)


def unmeasured_skills(records: Records) -> list[Unmeasured]:
    """Return the skills on models of which every trial was skipped, so that there is no cell."""
    cases: defaultdict[CellKey, list[SkippedCase]] = defaultdict(list)
    for (key, case), reason in records.skipped.items():
        cases[key].append(SkippedCase(case=case, reason=reason))
    return sorted(
        Unmeasured(path=key.path, skill=key.skill, model=key.model, cases=tuple(cases[key]))
        for key in cases.keys() - {record.cell_key for record in records.measured}
    )


def _labels(cell: Cell, root: Path) -> CellLabels | None:
    """Return the labels that apply to a cell, None without a labels file."""
    if not any(trial.statements for trial in cell.trials):
        return None
    # Imported here: most skills have no labels.
    from pytest_upskill.cases.judge_labels import labels_beside
    from pytest_upskill.grading.labels import cell_labels

    # Collection has reported a file that cannot be read.
    with suppress(BadFile):
        if file := labels_beside(root / cell.path):
            return cell_labels(
                file,
                cell.trials,
                judge=cell.judge,
                model=cell.model,
                resolved=cell.resolved,
            )
    return None


def _reason(report: pytest.TestReport) -> str:
    """Return why a trial was skipped; pytest stores path, line and reason."""
    assert isinstance(report.longrepr, tuple)
    return report.longrepr[2].removeprefix("Skipped: ")


_When = Literal["setup", "call", "teardown"]
_Outcome = Literal["passed", "failed", "skipped"]


def report_gate(session: pytest.Session, gate: Gate) -> None:
    """Report a gate as if it were a test; a skipped one has no call."""
    location = (gate.cell.path, 0, f"{gate.cell.title}: {gate.name}")
    phases: list[tuple[_When, _Outcome, Any]] = [
        ("setup", "passed", None),
        ("call", gate.outcome, safe(gate.report) if gate.outcome == "failed" else None),
    ]
    if gate.outcome == "skipped":
        phases = [("setup", "skipped", (gate.cell.path, 1, f"Skipped: {safe_line(gate.text)}"))]
    properties, hook = gate_properties(gate), session.config.hook
    hook.pytest_runtest_logstart(nodeid=gate.nodeid, location=location)
    for when, phase_outcome, longrepr in [*phases, ("teardown", "passed", None)]:
        report = pytest.TestReport(
            nodeid=gate.nodeid,
            location=location,
            keywords={},
            outcome=phase_outcome,
            longrepr=longrepr,
            when=when,
            user_properties=properties,
            upskill=None,  # marks a report of this plugin; a gate has no trial record
        )
        hook.pytest_runtest_logreport(report=report)
    hook.pytest_runtest_logfinish(nodeid=gate.nodeid, location=location)


_REPORTED = {
    *("runs", "min_pass_rate", "min_mean_pass_rate", "min_lift", "min_recall"),
    *("max_false_triggers", "max_tokens", "compare", "cache_mode"),
}
"""Options that a report shows as they are."""


def session_of(
    records: Records, settings: Settings, *, max_cost: float | None, failures: int, **how: Any
) -> Session:
    """Return the session as a report has it.

    Args:
        records: Results of its trials.
        settings: Values of all options.
        max_cost: Limit of the cost in dollars that it had; None for none.
        failures: Number of all failures, also of those that have no report, such as too little
            coverage.
        how: Further fields: how it ended, and what it left out.
    """
    parameters = ((model, entry) for model in settings.models for entry in model.parameters.entries)
    options: dict[str, Any] = {
        **settings.model_dump(mode="json", by_alias=True, include=_REPORTED),
        "fail_on": sorted(settings.fail_on),
        "params": [f"{model.label}:{entry}" for model, entry in parameters],
        "baseline_update": settings.baseline_update or None,
        "judge": settings.judge.resolved if settings.judge else None,
        "max_cost": max_cost,
    }
    return Session(
        date=datetime.now(UTC).replace(microsecond=0),
        versions={
            "pytest-upskill": version("pytest-upskill"),
            "pytest": version("pytest"),
            "python": platform.python_version(),
        },
        models={model.label: model.resolved for model in settings.models},
        options=options,
        unmeasured=tuple(unmeasured_skills(records)),
        other_tests=records.other_tests,
        other_failures=max(0, failures - records.failures),
        **how,
    )
