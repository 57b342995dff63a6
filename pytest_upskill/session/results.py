"""The cells of a session and their gates, decided and reported after the last test."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar

import pytest

from pytest_upskill import STATE
from pytest_upskill.cases.source.document import BadFile
from pytest_upskill.figures.baseline import (
    BaselineError,
    Baselines,
    Update,
    key_of,
    read_baselines,
    update_baselines,
)
from pytest_upskill.figures.cell import Cell
from pytest_upskill.figures.gate import CellGate, Gate, TriggerGate, decide_gates, skipped_gate
from pytest_upskill.figures.trial_group import with_places
from pytest_upskill.figures.trigger_cell import TriggerCell
from pytest_upskill.project.messages import safe, safe_line
from pytest_upskill.project.project import TRIGGER_BASELINES
from pytest_upskill.report.junit import Properties, gate_properties
from pytest_upskill.session.settings import SETTINGS, Settings
from pytest_upskill.trials.digests import judge_name
from pytest_upskill.trials.result import CellKey, CellLabels, SkippedCase, TrialRecord, Unmeasured
from pytest_upskill.trials.trial import Arm, runs_of

AnyGate = Gate | TriggerGate
C = TypeVar("C", Cell, TriggerCell)


class Results:
    """The results of trials, cells and gates, in the process that reports them."""

    def __init__(self, config: pytest.Config) -> None:
        self.records = Records()
        self.baselines: list[Update] = []
        """Outcome of each baseline update, under --upskill-baseline-update."""
        self.orphans: list[str] = []
        """One line for each baseline file that can be deleted."""
        self.collection_failed = False
        self._config = config
        self._settings = config.stash[SETTINGS]
        self._lifts = _Kind[Cell](self._settings, "baselines", "baseline", chooses=False)
        self._choices = _Kind[TriggerCell](
            self._settings, TRIGGER_BASELINES, "trigger baseline", chooses=True
        )

    @property
    def gates(self) -> list[Gate]:
        """The gate of each cell, once all trials have run."""
        return self._lifts.gates

    @property
    def trigger_gates(self) -> list[TriggerGate]:
        """The gate of each trigger cell, likewise."""
        return self._choices.gates

    @property
    def decisions(self) -> list[AnyGate]:
        """The gates of both kinds."""
        return [*self.gates, *self.trigger_gates]

    def finish(self, session: pytest.Session) -> None:
        """Decide the gate of every cell, report it as a test, and write baselines."""
        self._lifts.decide(cells_of(self.records, self._settings, self._config.rootpath))
        self._choices.decide(trigger_cells_of(self.records, self._settings))
        self.orphans = [*self._lifts.unused_baselines(), *self._choices.unused_baselines()]
        session.testscollected += len(self.decisions)
        for gate in self.decisions:
            report_gate(session, gate, gate_properties(gate))
        if self._settings.baseline_update:
            nothing = Update(text="no baseline written: nothing was measured")
            updates = [*self._lifts.write_baselines(), *self._choices.write_baselines()]
            self.baselines = updates or [nothing]


class _Kind(Generic[C]):
    """The cells of one kind, of lifts or of choices: their gates and baselines.

    Raises:
        pytest.UsageError: A baseline cannot be used.
    """

    def __init__(self, settings: Settings, folder: str, what: str, *, chooses: bool) -> None:
        self.gates: list[CellGate[C]] = []
        self._settings = settings
        self._folder = settings.project / STATE / folder
        self._what = what
        self._chooses = chooses
        self._old: Baselines | None = None
        if settings.compare == "baseline" or settings.baseline_update:
            models = [model.label for model in settings.models]
            try:
                self._old = read_baselines(self._folder, models, settings.project)
            except BaselineError as error:
                raise pytest.UsageError(str(error)) from None

    def decide(self, cells: Sequence[C]) -> None:
        """Decide the gates; a shard decides none."""
        settings = self._settings
        if settings.shard is not None:
            self.gates = [skipped_gate(cell, "sharded: merge the reports") for cell in cells]
            return
        # Baselines that are only to be updated decide nothing.
        old = self._old if settings.compare == "baseline" else None
        self.gates = decide_gates(cells, settings.thresholds, old)

    def unused_baselines(self) -> Iterator[str]:
        """Yield a line for each baseline file that can be deleted."""
        if self._old is None:
            return
        for baseline, reason in self._old.unused([key_of(gate.cell) for gate in self.gates]):
            cell = f"{baseline.key.skill} on {baseline.key.model}"
            yield f"{cell}: {reason}: delete the baseline, {baseline.file}"

    def write_baselines(self) -> list[Update]:
        """Write the baselines of all cells, and return the outcome of each."""
        settings = self._settings
        runs = {
            model.label: runs_of(model, settings.runs, chooses=self._chooses)
            for model in settings.models
        }
        cells = [gate.cell for gate in self.gates]
        return update_baselines(cells, self._folder, runs=runs, what=self._what)


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
        measured = {(each.path, each.cell_key.chooses, each.result.case) for each in self.measured}
        reasons = {
            (key.path, key.chooses, case): reason
            for key, cases in self.skipped.items()
            for case, reason in cases.items()
        }
        return {
            (path, case): reason
            for (path, chooses, case), reason in reasons.items()
            if (path, chooses, case) not in measured
        }.values()

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
    """Return the cells in the order of case files and chosen models.

    Args:
        records: Results of the session's trials.
        settings: Values of all options.
        root: Folder that the paths of case files are relative to.
    """
    judge = "" if settings.judge is None else judge_name(settings.judge)
    groups = _groups(records, settings, chooses=False)
    cells = [Cell(**fields, judge=judge) for fields in groups]
    return with_places([replace(cell, labels=_labels(cell, root)) for cell in cells])


def trigger_cells_of(records: Records, settings: Settings) -> list[TriggerCell]:
    """Return the trigger cells in the same order."""
    groups = _groups(records, settings, chooses=True)
    return with_places([TriggerCell(**fields) for fields in groups])


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


def _groups(records: Records, settings: Settings, *, chooses: bool) -> Iterator[dict[str, Any]]:
    """Yield what every kind of cell has, for each cell of one kind.

    Args:
        records: Results of the session's trials.
        settings: Values of all options.
        chooses: Whether to take the trials in which a model chose a skill, or the others.
    """
    model_order = {model.label: index for index, model in enumerate(settings.models)}
    in_order = sorted(
        (record for record in records.trials.values() if record.cell_key.chooses == chooses),
        key=lambda record: (record.path, model_order[record.result.model], record.index),
    )
    for key, group in groupby(in_order, key=lambda record: record.cell_key):
        trials = list(group)
        if len(trials) == trials[0].planned and not any(each.result.planned for each in trials):
            continue
        first = trials[0]
        yield {
            "path": first.path,
            "case_file": settings.in_project(first.path),
            "skill": first.result.skill,
            "model": first.result.model,
            "resolved": first.result.resolved,
            "gate": first.gate,
            "planned": first.planned,
            "ref": first.ref,
            "history": first.history,
            "past_unknown": first.past_unknown,
            "skipped": tuple(sorted(records.skipped.get(key, ()))),
            "trials": tuple(record.result for record in trials),
        }


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


def report_gate(session: pytest.Session, gate: AnyGate, properties: Properties) -> None:
    """Report a gate as if it were a test.

    Args:
        session: The session.
        gate: The gate.
        properties: Its JUnit properties.
    """
    location = (gate.cell.path, 0, f"{gate.cell.title}: {gate.name}")
    hook = session.config.hook
    hook.pytest_runtest_logstart(nodeid=gate.nodeid, location=location)
    for when, outcome, longrepr in _phases(gate):
        report = pytest.TestReport(
            nodeid=gate.nodeid,
            location=location,
            keywords={},
            outcome=outcome,
            longrepr=longrepr,
            when=when,
            user_properties=properties,
            upskill=None,  # marks a report of this plugin; a gate has no trial record
        )
        hook.pytest_runtest_logreport(report=report)
    hook.pytest_runtest_logfinish(nodeid=gate.nodeid, location=location)


def _phases(
    gate: AnyGate,
) -> Iterator[tuple[_When, _Outcome, str | tuple[str, int, str] | None]]:
    """Yield phase, outcome and failure text of a gate's reports; a skipped gate has no call."""
    if gate.outcome == "skipped":
        yield "setup", "skipped", (gate.cell.path, 1, f"Skipped: {safe_line(gate.text)}")
    else:
        yield "setup", "passed", None
        yield "call", gate.outcome, safe(gate.report) if gate.outcome == "failed" else None
    yield "teardown", "passed", None
