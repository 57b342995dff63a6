"""The cells of a session and their gates, its report and its exit code, after the last test.

Where tests ran, `report.outcome` decides the exit code, as it does for merged reports. Only files
that could not be written are decided here: 4 instead of 0.
"""

from __future__ import annotations

import platform
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from importlib.metadata import version
from itertools import groupby
from pathlib import Path
from typing import Any, Literal

import pytest

from pytest_upskill import STATE
from pytest_upskill.cases.source.document import BadFile
from pytest_upskill.figures.baseline import (
    BaselineError,
    Baselines,
    Update,
    read_baselines,
    update_baseline,
)
from pytest_upskill.figures.cell import Cell, with_places
from pytest_upskill.figures.gate import NOT_MEASURED, Gate, decide_gates
from pytest_upskill.project.messages import safe, safe_line
from pytest_upskill.report.document import Report, Session
from pytest_upskill.report.junit import Properties, gate_properties
from pytest_upskill.report.outcome import (
    EXIT_CODES,
    missing_comparisons,
    outcome,
    uncompared_base,
    why_undecided,
)
from pytest_upskill.session.resources import RESOURCES
from pytest_upskill.session.selection import Selection
from pytest_upskill.session.settings import SETTINGS, Settings, runs_tests
from pytest_upskill.trials.digests import judge_name
from pytest_upskill.trials.needs import skip_reasons
from pytest_upskill.trials.result import CellKey, CellLabels, SkippedCase, TrialRecord, Unmeasured
from pytest_upskill.trials.trial import Arm

_REPORTED = {
    *("runs", "min_pass_rate", "min_mean_pass_rate", "min_lift", "min_recall"),
    *("max_false_triggers", "max_tokens", "compare", "cache_mode"),
}
"""Options that a report shows as they are."""

_RAN_TO_THE_END = (
    pytest.ExitCode.OK,
    pytest.ExitCode.TESTS_FAILED,
    pytest.ExitCode.NO_TESTS_COLLECTED,
)
"""Other codes come from Ctrl-C, from pytest.exit() and from errors."""


class Results:
    """The results of trials, cells and gates, in the process that reports them.

    Raises:
        pytest.UsageError: A baseline cannot be used.
    """

    def __init__(self, config: pytest.Config, selection: Selection) -> None:
        self.records = Records()
        self.gates: list[Gate] = []
        """The gate of each cell, once all trials have run."""
        self.baselines: list[Update] = []
        """Outcome of each baseline update, under --upskill-baseline-update."""
        self.collection_failed = False
        self._config = config
        self._settings = settings = config.stash[SETTINGS]
        self.report: Report | None = None
        """The session as a value; None before its end, and where no test was to run."""
        self._selection = selection
        self._was_interrupted = False
        self._folder = settings.project / STATE / "baselines"
        self._old: Baselines | None = None
        if settings.compare == "baseline" or settings.baseline_update:
            models = [model.label for model in settings.models]
            try:
                self._old = read_baselines(self._folder, models)
            except BaselineError as error:
                raise pytest.UsageError(str(error)) from None

    @property
    def reported(self) -> list[Gate]:
        """The gates that are tests: all but those of what ``offline`` chose by words."""
        return [gate for gate in self.gates if not gate.cell.is_by_words]

    def finish(self, session: pytest.Session) -> None:
        """Decide the gate of every cell, report it as a test, and write baselines."""
        cells = cells_of(self.records, self._settings, self._config.rootpath)
        # Baselines that are only to be updated decide nothing.
        old = self._old if self._settings.compare == "baseline" else None
        self.gates = decide_gates(cells, self._settings.thresholds, old)
        session.testscollected += len(self.reported)
        for gate in self.reported:
            report_gate(session, gate, gate_properties(gate))
        if self._settings.baseline_update:
            self.baselines = [update_baseline(cell, self._folder) for cell in cells] or [
                Update(text="no baseline written: nothing was measured")
            ]

    def decide_exit_code(self, session: pytest.Session) -> None:
        """Set the exit status."""
        if runs_tests(self._config) and not (self._settings.dry_run or self._settings.prune):
            self.report = self._make_report(session)
            self._was_interrupted = session.exitstatus not in _RAN_TO_THE_END
            if not self._was_interrupted:
                session.exitstatus = EXIT_CODES[outcome(self.report)]
        if any(update.refused for update in self.baselines):
            fail_unwritten(session)

    def undecided(self, *, quiet: bool) -> list[str]:
        """Return why nothing or not everything was measured, and what was not compared.

        Args:
            quiet: Whether the notes about the cells are not printed. Then each missing comparison
                is a line here, as it must not look like one that found no regression.
        """
        if self.report is None or self._was_interrupted:
            return []  # pytest says why
        code = ""
        if outcome(self.report) == "undecided":
            code = f"exit code {NOT_MEASURED}: "
        # pytest prints the errors, with -qq too.
        names_error = self._config.getoption("tbstyle", "auto") == "no"
        lines = why_undecided(self.report, names_error=names_error, in_its_run=True)
        reasons = [f"{code}{each}" for each in lines]
        if quiet and uncompared_base(self.report) is None:
            reasons += missing_comparisons(self.report)
        return reasons

    def _make_report(self, session: pytest.Session) -> Report:
        stopped = (
            session.exitstatus not in _RAN_TO_THE_END
            or session.shouldfail
            or self._config.stash[RESOURCES].budget.stopped
        )
        compares = self._settings.ref is not None or self._settings.changed_since is not None
        made = Session(
            date=datetime.now(UTC).replace(microsecond=0),
            versions={
                "pytest-upskill": version("pytest-upskill"),
                "pytest": version("pytest"),
                "python": platform.python_version(),
            },
            models={model.label: model.resolved for model in self._settings.models},
            options=_options(self._settings)
            | {"max_cost": self._config.stash[RESOURCES].budget.limit},
            complete=not (stopped or self.collection_failed),
            unmeasured=tuple(unmeasured_skills(self.records)),
            other_tests=self.records.other_tests,
            # Failures that have no report count too, such as too little coverage.
            other_failures=max(0, session.testsfailed - self.records.failures),
            without_trials=tuple(self._selection.without_trials()) if compares else (),
            nothing_changed=self._selection.nothing_changed,
        )
        return Report(sessions=(made,), gates=tuple(self.gates))


def _options(settings: Settings) -> dict[str, Any]:
    """Return the options that a report shows, by name."""
    plain = settings.model_dump(mode="json", by_alias=True, include=_REPORTED)
    return plain | {
        "fail_on": sorted(settings.fail_on),
        "params": [
            f"{model.label}:{entry}"
            for model in settings.models
            for entry in model.parameters.entries
        ],
        "baseline_update": settings.baseline_update or None,
        "judge": settings.judge.resolved if settings.judge else None,
    }


def fail_unwritten(session: pytest.Session) -> None:
    """Set the exit status, if it is OK, to that of a file which could not be written."""
    session.exitstatus = session.exitstatus or pytest.ExitCode.USAGE_ERROR


TrialKey = tuple[str, str, str, Arm]
"""Case file, case, model and arm."""


@dataclass(slots=True)
class Records:
    """Results of trials, and skipped cases with the reason."""

    trials: dict[TrialKey, TrialRecord] = field(default_factory=dict)
    """If a trial is rerun, the last attempt counts."""
    skipped: defaultdict[CellKey, dict[str, str]] = field(
        default_factory=lambda: defaultdict[CellKey, dict[str, str]](dict)
    )
    """The reason by the id of the case, for each cell."""
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
        skipped = (
            ((key.path, case, key.chooses), reason)
            for key, cases in self.skipped.items()
            for case, reason in cases.items()
        )
        return skip_reasons(
            skipped,
            {(each.path, each.result.case, each.cell_key.chooses) for each in self.measured},
        )

    def add(self, report: pytest.TestReport) -> None:
        """Record what a report says of a trial."""
        if skipped := getattr(report, "upskill_skipped", None):
            cell_fields, case = skipped
            self.skipped[CellKey(*cell_fields)][case] = _reason(report)
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
            case_file=settings.in_project(first.path),
            skill=first.result.skill,
            model=first.result.model,
            resolved=first.result.resolved,
            gate=first.gate,
            planned=first.planned,
            ref=first.ref,
            history=first.history,
            past_unknown=first.past_unknown,
            skipped=tuple(sorted(records.skipped.get(key, ()))),
            trials=tuple(record.result for record in trials),
            at_k=settings.at_k,
            judge="" if key.chooses or settings.judge is None else judge_name(settings.judge),
        )
        cells.append(replace(cell, labels=_labels(cell, root)))
    return with_places(cells)


def unmeasured_skills(records: Records) -> list[Unmeasured]:
    """Return the skills on models of which every trial was skipped, so that there is no cell."""
    measured = {record.cell_key for record in records.measured}
    return sorted(
        Unmeasured(
            path=key.path,
            skill=key.skill,
            model=key.model,
            cases=tuple(
                SkippedCase(case=case, reason=reason)
                for case, reason in records.skipped[key].items()
            ),
        )
        for key in records.skipped.keys() - measured
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


def report_gate(session: pytest.Session, gate: Gate, properties: Properties) -> None:
    """Report a gate as if it were a test.

    Args:
        session: The session.
        gate: The gate.
        properties: Its JUnit properties.
    """
    location = (gate.cell.path, 0, f"{gate.cell.title}: {gate.name}")
    hook = session.config.hook
    hook.pytest_runtest_logstart(nodeid=gate.nodeid, location=location)
    for when, phase_outcome, longrepr in _phases(gate):
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


def _phases(
    gate: Gate,
) -> Iterator[tuple[_When, _Outcome, str | tuple[str, int, str] | None]]:
    """Yield phase, outcome and failure text of a gate's reports; a skipped gate has no call."""
    if gate.outcome == "skipped":
        yield "setup", "skipped", (gate.cell.path, 1, f"Skipped: {safe_line(gate.text)}")
    else:
        yield "setup", "passed", None
        yield "call", gate.outcome, safe(gate.report) if gate.outcome == "failed" else None
    yield "teardown", "passed", None
