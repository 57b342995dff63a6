"""The ledger: every trial's result as its report comes in, and the gate items at the end."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Generator, Iterator
from itertools import groupby
from typing import TYPE_CHECKING, Literal

import pytest

from pytest_upskill.cells.cell import Cell, told_apart
from pytest_upskill.cells.gate import NOT_MEASURED, Gate, compares_nothing, decide_all, no_decision
from pytest_upskill.report.junit.properties import cell_properties
from pytest_upskill.result import SkippedCase, TrialRecord, Unmeasured, skip_reasons
from pytest_upskill.sanitize.safe_text import safe, safe_line
from pytest_upskill.session.preflight import RESOURCES, asks
from pytest_upskill.session.settings import Settings

if TYPE_CHECKING:
    from pytest_upskill.cells.baseline_folder import Baselines
    from pytest_upskill.cells.baseline_update import Update

_When = Literal["setup", "call", "teardown"]
_Outcome = Literal["passed", "failed", "skipped"]


class Ledger:
    """Keeps results in the process that reports: the only one, or the xdist controller."""

    def __init__(self, config: pytest.Config, settings: Settings) -> None:
        self.gates: list[Gate] = []
        """What was decided about each cell, once all trials are in."""
        self._config = config
        self._settings = settings
        self.cells: list[Cell] = []
        """In the order of case files and chosen models."""
        self._records: dict[str, TrialRecord] = {}
        self._skipped: defaultdict[tuple[str, str, str], dict[str, str]] = defaultdict(dict)
        """Cases of which a trial was, with the reason, by case file, skill and model."""
        self._skipped_trials: set[str] = set()
        """Their node ids."""
        self.not_measured = False
        """Whether the run ends as not measured: nothing is red but what misses data."""
        self.baselines: list[Update] = []
        """What became of the baseline files, where they were to be updated."""
        self.orphans: list[str] = []
        """Baselines that are of nothing any more, a line each."""
        self._baselines = _baselines(settings)
        self._unmeasured = 0
        """Reports that are red only because runs are missing."""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep a trial's result; of a trial that is run again the last attempt counts."""
        record = getattr(report, "upskill", None)
        if record is not None:
            self._records[report.nodeid] = record
            self._unmeasured += report.failed and report.when == "setup"
        if names := getattr(report, "upskill_skipped", None):
            *cell, case = names
            self._skipped[tuple(cell)][case] = _reason(report)
            self._skipped_trials.add(report.nodeid)

    @property
    def unmeasured(self) -> list[Unmeasured]:
        """Skills and models where every trial was skipped, so that there is no cell."""
        cells = {(cell.path, cell.skill, cell.model) for cell in self.cells}
        return sorted(
            Unmeasured(
                path=path,
                skill=skill,
                model=model,
                cases=tuple(
                    SkippedCase(case=case, reason=reason)
                    for case, reason in self._skipped[path, skill, model].items()
                ),
            )
            for path, skill, model in self._skipped.keys() - cells
        )

    @property
    def nothing_measured(self) -> str:
        """Why there is no result at all, in one line; empty if there is one, or nothing ran.

        A share of a sharded run may well be without: the merged report decides.
        """
        trials = len(self._skipped_trials)
        if self._records or not trials or self._settings.shard or not asks(self._config):
            return ""
        reasons = {
            (path, skill, case): reason
            for (path, skill, _), cases in self._skipped.items()
            for case, reason in cases.items()
        }
        skipped = "1 trial" if trials == 1 else f"{trials} trials"
        return f"{skipped} skipped: {skip_reasons(reasons.values())}"

    @property
    def compares_nothing(self) -> str | None:
        """With what nothing was compared though it was asked for; None where something was.

        A run that records baselines may have none yet.
        """
        return None if self._settings.baseline_update else compares_nothing(self.gates)

    # First: what comes later prints the status.
    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Tell CI by the exit code what no test is red for."""
        # A replay asks nobody: what is missing there was not recorded, and that is red.
        missing = self._settings.cache_mode != "replay" and self._misses_data()
        missing = missing or bool(self.nothing_measured)
        missing = missing or self.compares_nothing is not None
        ended = session.exitstatus in {pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED}
        if missing and ended and session.testsfailed == self._unmeasured:
            self.not_measured = True
            session.exitstatus = NOT_MEASURED
        if any(update.refused for update in self.baselines):
            session.exitstatus = session.exitstatus or pytest.ExitCode.USAGE_ERROR

    def _misses_data(self) -> bool:
        if self._unmeasured or self._config.stash[RESOURCES].budget.stopped:
            return True
        return any(gate.misses_data for gate in self.gates)

    # Last, so innermost: the gates come before the terminal closes its progress line.
    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtestloop(self, session: pytest.Session) -> Generator[None, object, object]:
        """Decide about every cell after its trials, also where -x or --maxfail cut the run."""
        try:
            return (yield)
        finally:
            self.cells = told_apart(self._sum_up())
            self.gates = self._decide()
            self.orphans = list(self._orphans())
            session.testscollected += len(self.gates)
            for gate in self.gates:
                self._emit(gate)
            if self._settings.baseline_update:
                from pytest_upskill.cells.baseline_update import update_baselines

                self.baselines = update_baselines(
                    self.cells, self._settings.baselines, runs=self._settings.runs
                )

    def _sum_up(self) -> list[Cell]:
        models = {model.label: place for place, model in enumerate(self._settings.models)}
        records = sorted(
            self._records.values(), key=lambda r: (r.path, models[r.result.model], r.index)
        )
        return [
            self._cell(list(group))
            for _, group in groupby(records, key=lambda r: (r.path, r.result.model))
        ]

    def _cell(self, records: list[TrialRecord]) -> Cell:
        first = records[0]
        skipped = self._skipped.get((first.path, first.result.skill, first.result.model), ())
        return Cell(
            path=first.path,
            case_file=self._settings.in_project(first.path),
            skill=first.result.skill,
            model=first.result.model,
            resolved=first.result.resolved,
            gate=first.gate,
            planned=first.planned,
            ref=first.ref,
            history=first.history,
            past_unknown=first.past_unknown,
            skipped=tuple(sorted(skipped)),
            trials=tuple(record.result for record in records),
        )

    def _decide(self) -> list[Gate]:
        if self._settings.shard is not None:
            return [no_decision(cell, "sharded: merge the reports") for cell in self.cells]
        compared = self._baselines if self._settings.compare == "baseline" else None
        return decide_all(self.cells, self._settings.thresholds, compared)

    def _orphans(self) -> Iterator[str]:
        """Name the baselines to delete; what did not run now may well be there."""
        if self._baselines is None:
            return
        from pytest_upskill.cells.baseline_folder import key_of

        for each, reason in self._baselines.needless([key_of(cell) for cell in self.cells]):
            key, file = each.key, each.file
            yield f"{key.skill} on {key.model}: {reason}: delete the baseline, {file}"

    def _emit(self, gate: Gate) -> None:
        """Report a gate as pytest reports an item, so that every consumer of reports sees it."""
        location = (gate.cell.path, 0, f"{gate.cell.title}: gate[{gate.cell.model}]")
        hook = self._config.hook
        hook.pytest_runtest_logstart(nodeid=gate.nodeid, location=location)
        for when, outcome, longrepr in _phases(gate):
            report = pytest.TestReport(
                nodeid=gate.nodeid,
                location=location,
                keywords={},
                outcome=outcome,
                longrepr=longrepr,
                when=when,
                user_properties=cell_properties(gate),
                upskill=None,  # one of ours, though no trial
            )
            hook.pytest_runtest_logreport(report=report)
        hook.pytest_runtest_logfinish(nodeid=gate.nodeid, location=location)


def _reason(report: pytest.TestReport) -> str:
    """Return why a trial was skipped, which pytest writes behind a path and a line."""
    assert isinstance(report.longrepr, tuple)
    return report.longrepr[2].removeprefix("Skipped: ")


def _phases(gate: Gate) -> Iterator[tuple[_When, _Outcome, str | tuple[str, int, str] | None]]:
    """Play a gate through the phases of an item; a skipped one has no call."""
    if gate.outcome == "skipped":
        yield "setup", "skipped", (gate.cell.path, 1, f"Skipped: {safe_line(gate.text)}")
    else:
        yield "setup", "passed", None
        yield "call", gate.outcome, safe(gate.report) if gate.outcome == "failed" else None
    yield "teardown", "passed", None


def _baselines(settings: Settings) -> Baselines | None:
    """Read the baselines of the chosen models before anything is paid for."""
    if settings.compare != "baseline" and not settings.baseline_update:
        return None
    # Only here: most runs have none.
    from pytest_upskill.cells.baseline import BaselineError
    from pytest_upskill.cells.baseline_folder import read_baselines

    try:
        models = [model.label for model in settings.models]
        return read_baselines(settings.baselines, models, settings.project)
    except BaselineError as error:
        raise pytest.UsageError(str(error)) from None
