"""The results of a session: those of trials, the cells that they make, and gates as tests."""

import os
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Any, Literal

import pytest

# pytest has no public way to say which part of a failure its summary shows.
from _pytest._code.code import ReprEntryNative, ReprExceptionInfo, ReprFileLocation, ReprTraceback

from pytest_upskill.cases.source.document import BadFile
from pytest_upskill.figures.cell import Cell, with_places
from pytest_upskill.figures.gate import Gate
from pytest_upskill.project.grouping import grouped
from pytest_upskill.project.messages import safe, safe_line
from pytest_upskill.report.junit import gate_properties
from pytest_upskill.session.settings import Settings
from pytest_upskill.trials.digests import judge_name
from pytest_upskill.trials.result import CellKey, CellLabels, SkippedCase, TrialResult, Unmeasured
from pytest_upskill.trials.trial import Arm


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialRecord:
    """A trial's result with its cell, as attached to a test report."""

    key: CellKey
    cell: Cell
    """The cell, without its trials and what is known only of all of them."""
    index: int
    """Index among the trials of the skill."""
    result: TrialResult


@dataclass(slots=True)
class Records:
    """Results of trials, and skipped cases with the reason."""

    trials: dict[tuple[CellKey, str, Arm], TrialRecord] = field(default_factory=dict)
    """By cell, case and arm; if a trial is rerun, the last attempt counts."""
    skipped: dict[tuple[CellKey, str], str] = field(default_factory=dict)
    """The reason by cell and id of the case."""
    failures: int = 0
    """Number of failed reports of trials and gates."""
    other_tests: int = 0
    """Number of other tests that ran."""

    def add(self, report: pytest.TestReport) -> None:
        """Record what a report says of a trial."""
        if skipped := getattr(report, "upskill_skipped", None):
            *cell, case = skipped
            assert isinstance(report.longrepr, tuple)  # path, line and reason
            self.skipped[CellKey(*cell), case] = report.longrepr[2].removeprefix("Skipped: ")
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
        self.trials[record.key, result.case, result.arm] = record

    @property
    def measured(self) -> set[tuple[CellKey, str]]:
        """The cells and cases in which something was checked."""
        records = self.trials.values()
        return {(each.key, each.result.case) for each in records if each.result.planned}

    def cells(self, settings: Settings) -> list[Cell]:
        """Return the cells in the order of case files and chosen models, those of lifts first."""
        in_order = sorted(self.trials.values(), key=attrgetter("index"))
        records = grouped((record.key, record) for record in in_order)
        labels = [model.label for model in settings.models]
        measured = sorted(
            {cell for cell, _ in self.measured},
            key=lambda cell: (cell.chooses, cell.path, labels.index(cell.model)),
        )
        return with_places(self._cell(key, records[key], settings) for key in measured)

    def _cell(self, key: CellKey, records: Sequence[TrialRecord], settings: Settings) -> Cell:
        """Return a cell with its trials."""
        cell = replace(
            records[0].cell,
            case_file=os.path.relpath(settings.rootdir / key.path, settings.project),
            skipped=tuple(sorted(case for cell, case in self.skipped if cell == key)),
            trials=tuple(record.result for record in records),
            at_k=settings.at_k,
            judge="" if key.chooses or settings.judge is None else judge_name(settings.judge),
        )
        return replace(cell, labels=_labels(cell, settings))

    def unmeasured(
        self, is_missed: Callable[[str, Collection[str]], bool]
    ) -> tuple[Unmeasured, ...]:
        """Return the skills on models of which every trial was skipped, so there is no cell.

        Args:
            is_missed: Returns whether a pull request changed the skill of a case file, and no other
                file of it was measured.
        """
        cases = grouped(
            (cell, SkippedCase(case=case, reason=reason))
            for (cell, case), reason in self.skipped.items()
        )
        measured = {cell for cell, _ in self.measured}
        skills = (
            Unmeasured(
                **cell._asdict(),
                cases=tuple(skipped),
                is_changed=is_missed(cell.path, {each.path for each in measured}),
            )
            for cell, skipped in cases.items()
            if cell not in measured
        )
        return tuple(sorted(skills))


def _labels(cell: Cell, settings: Settings) -> CellLabels | None:
    """Return the labels that apply to a cell, None without a labels file."""
    if not any(trial.statements for trial in cell.trials):
        return None
    # Imported here: most skills have no labels.
    from pytest_upskill.cases.judge_labels import labels_beside
    from pytest_upskill.grading.labels import cell_labels

    # Collection has reported a file that cannot be read.
    with suppress(BadFile):
        if file := labels_beside(settings.project / cell.case_file):
            return cell_labels(
                file, cell.trials, judge=cell.judge, model=cell.model, resolved=cell.resolved
            )
    return None


_When = Literal["setup", "call", "teardown"]
Outcome = Literal["passed", "failed", "skipped"]


def failure_repr(text: str, path: str, line: int) -> ReprExceptionInfo:
    """Return the report of a failure whose first line says it all.

    Where CI is set, pytest's summary has the whole message of each failure, which is that line.
    """
    where = ReprFileLocation(path, line, text.partition("\n")[0])
    entry = ReprEntryNative([f"{text}\n"])
    return ReprExceptionInfo(ReprTraceback([entry], extraline=None, style="native"), where)


def report_gate(session: pytest.Session, gate: Gate) -> None:
    """Report a gate as if it were a test."""
    text = gate.report if gate.outcome == "failed" else gate.text
    title = f"{gate.cell.title}: {gate.name}"
    # What marks a report of this plugin; a gate has no trial record.
    marks = {"user_properties": gate_properties(gate), "upskill": None}
    report_as_test(session, gate.nodeid, title, gate.outcome, text, **marks)


def report_as_test(
    session: pytest.Session, nodeid: str, title: str, outcome: Outcome, text: str, **fields: Any
) -> None:
    """Report what was decided as if it were a test; a skipped one has no call.

    Args:
        session: The session.
        nodeid: The node id, which begins with the path of a file.
        title: The title above a failure.
        outcome: What was decided.
        text: Why it failed or is skipped.
        fields: Further fields of its reports.
    """
    session.testscollected += 1  # one at a time, or the percentage would go back from 100
    path, hook = nodeid.partition("::")[0], session.config.hook
    location = (path, 0, title)
    phases: list[tuple[_When, Outcome, Any]] = [
        ("setup", "passed", None),
        ("call", outcome, failure_repr(safe(text), path, 1) if outcome == "failed" else None),
    ]
    if outcome == "skipped":
        phases = [("setup", "skipped", (path, 1, f"Skipped: {safe_line(text)}"))]
    hook.pytest_runtest_logstart(nodeid=nodeid, location=location)
    for when, phase_outcome, longrepr in [*phases, ("teardown", "passed", None)]:
        report = pytest.TestReport(
            nodeid=nodeid,
            location=location,
            keywords={},
            outcome=phase_outcome,
            longrepr=longrepr,
            when=when,
            **fields,
        )
        hook.pytest_runtest_logreport(report=report)
    hook.pytest_runtest_logfinish(nodeid=nodeid, location=location)
