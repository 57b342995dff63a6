"""Results of a session, and the gate items made from them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Generator, Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING, Any

import pytest

from pytest_upskill.cells.cell import Cell
from pytest_upskill.cells.gate import NOT_MEASURED, Gate, compares_nothing, decide_all, no_decision
from pytest_upskill.cells.same_name import with_places
from pytest_upskill.cells.trigger_cell import TriggerCell
from pytest_upskill.cells.trigger_gate import TriggerGate, decide_triggers, no_trigger_decision
from pytest_upskill.formats.source.problems import BadFile
from pytest_upskill.report.junit.properties import (
    cell_properties,
    trigger_properties,
)
from pytest_upskill.session.options.settings import Settings, runs_tests
from pytest_upskill.session.resources import RESOURCES
from pytest_upskill.session.results.baselines import baselines_of, orphans, write_baselines
from pytest_upskill.session.results.gate_items import report_gate
from pytest_upskill.trials.digests import judge_name
from pytest_upskill.trials.result import CellLabels, TrialRecord
from pytest_upskill.trials.skipped import SkippedCase, Unmeasured, skip_reasons
from pytest_upskill.trials.trial import TRIGGER_ARMS

if TYPE_CHECKING:
    from pytest_upskill.cells.baseline_update import Update


class Results:
    """Results of trials, cells and gates, in the only process or the pytest-xdist controller."""

    def __init__(self, config: pytest.Config, settings: Settings) -> None:
        self.gates: list[Gate] = []
        """Decision about each cell, once all trials have run."""
        self._config = config
        self._settings = settings
        self.cells: list[Cell] = []
        """Cells in the order of case files and chosen models."""
        self.trigger_cells: list[TriggerCell] = []
        """Trigger cells in the same order."""
        self.trigger_gates: list[TriggerGate] = []
        """Decision about each trigger cell."""
        self._records: dict[str, TrialRecord] = {}
        self._skipped: defaultdict[tuple[str, str, str, bool], dict[str, str]] = defaultdict(dict)
        """Skipped cases with the reason, by case file, skill, model and whether a model chooses."""
        self._skipped_trials: set[str] = set()
        """Node ids of the skipped trials."""
        self.not_measured = False
        """Whether the exit status is ``NOT_MEASURED``: data is missing, and nothing else failed."""
        self.baselines: list[Update] = []
        """Outcome of each baseline update, under --upskill-baseline-update."""
        self.orphans: list[str] = []
        """One line for each baseline file that can be deleted."""
        self._baselines = baselines_of(settings, settings.baselines)
        self._trigger_baselines = baselines_of(settings, settings.trigger_baselines)
        self._unmeasured = 0
        """Number of trials that are errors because runs are missing."""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Record a trial's result; if a trial is rerun, the last attempt counts."""
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
        """Skills on models of which every trial was skipped, so that there is no cell."""
        cells = {
            (cell.path, cell.skill, cell.model, isinstance(cell, TriggerCell))
            for cell in (*self.cells, *self.trigger_cells)
        }
        return sorted(
            Unmeasured(
                path=path,
                skill=skill,
                model=model,
                cases=tuple(
                    SkippedCase(case=case, reason=reason)
                    for case, reason in self._skipped[path, skill, model, chooses].items()
                ),
            )
            for path, skill, model, chooses in self._skipped.keys() - cells
        )

    @property
    def nothing_measured(self) -> str:
        """Why the session has no result, in one line; empty if it has one or had no trial.

        Always empty for a shard, which may have no result: the merged report decides.
        """
        trials = len(self._skipped_trials)
        if self._records or not trials or self._settings.shard or not runs_tests(self._config):
            return ""
        reasons = {
            (path, skill, case): reason
            for (path, skill, _, _), cases in self._skipped.items()
            for case, reason in cases.items()
        }
        skipped = "1 trial" if trials == 1 else f"{trials} trials"
        return f"{skipped} skipped: {skip_reasons(reasons.values())}"

    @property
    def compares_nothing(self) -> str | None:
        """What no cell could be compared with, though --upskill-compare is set; None if one was.

        Always None when baselines are updated: there may be none yet.
        """
        return None if self._settings.baseline_update else compares_nothing(self.gates)

    # First: later hooks print the exit status.
    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Set the exit status if data is missing or a baseline could not be written."""
        # In a replay a missing run was not recorded: that is a failure, not missing data.
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
        if any(gate.misses_data for gate in self.trigger_gates):
            return True
        return any(gate.misses_data for gate in self.gates)

    # Last, so innermost: gates are reported before the terminal ends its progress line.
    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtestloop(self, session: pytest.Session) -> Generator[None, object, object]:
        """Report the gate of every cell after the last test, also if -x stopped the session."""
        try:
            return (yield)
        finally:
            self.cells = with_places(self._sum_up())
            self.trigger_cells = with_places(self._sum_up_triggers())
            self.gates = self._decide()
            self.trigger_gates = self._decide_triggers()
            stored = (self._baselines, self.cells), (self._trigger_baselines, self.trigger_cells)
            self.orphans = list(orphans(stored))
            session.testscollected += len(self.gates) + len(self.trigger_gates)
            for gate in self.gates:
                report_gate(self._config, gate, cell_properties(gate))
            for chosen in self.trigger_gates:
                report_gate(self._config, chosen, trigger_properties(chosen))
            if self._settings.baseline_update:
                self.baselines = write_baselines(self._settings, self.cells, self.trigger_cells)

    def _sum_up(self) -> list[Cell]:
        judge = "" if self._settings.judge is None else judge_name(self._settings.judge)
        cells = [Cell(**self._fields(records), judge=judge) for records in self._of_kind(False)]
        return [replace(cell, labels=self._labels(cell)) for cell in cells]

    def _sum_up_triggers(self) -> list[TriggerCell]:
        return [TriggerCell(**self._fields(records)) for records in self._of_kind(True)]

    def _of_kind(self, chooses: bool) -> Iterator[list[TrialRecord]]:
        """Yield the records of each cell, either those in which a model chose or the others."""
        models = {model.label: place for place, model in enumerate(self._settings.models)}
        records = sorted(
            (r for r in self._records.values() if (r.result.arm in TRIGGER_ARMS) == chooses),
            key=lambda r: (r.path, models[r.result.model], r.index),
        )
        for _, group in groupby(records, key=lambda r: (r.path, r.result.model)):
            yield list(group)

    def _fields(self, records: list[TrialRecord]) -> dict[str, Any]:
        """Return what every kind of cell has."""
        first, result = records[0], records[0].result
        chooses = result.arm in TRIGGER_ARMS
        skipped = self._skipped.get((first.path, result.skill, result.model, chooses), ())
        return {
            "path": first.path,
            "case_file": self._settings.in_project(first.path),
            "skill": result.skill,
            "model": result.model,
            "resolved": result.resolved,
            "gate": first.gate,
            "planned": first.planned,
            "ref": first.ref,
            "history": first.history,
            "past_unknown": first.past_unknown,
            "skipped": tuple(sorted(skipped)),
            "trials": tuple(record.result for record in records),
        }

    def _labels(self, cell: Cell) -> CellLabels | None:
        """Return the labels that apply to a cell, None without a labels file."""
        if not any(trial.statements for trial in cell.trials):
            return None
        # Imported here: most skills have no labels.
        from pytest_upskill.formats.judge_labels import labels_beside
        from pytest_upskill.grading.calibration import cell_labels

        # Collection has reported a file that cannot be read.
        with suppress(BadFile):
            if file := labels_beside(self._config.rootpath / cell.path):
                return cell_labels(
                    file,
                    cell.trials,
                    judge=cell.judge,
                    model=cell.model,
                    resolved=cell.resolved,
                )
        return None

    def _decide(self) -> list[Gate]:
        if self._settings.shard is not None:
            return [no_decision(cell, "sharded: merge the reports") for cell in self.cells]
        compared = self._baselines if self._settings.compare == "baseline" else None
        return decide_all(self.cells, self._settings.thresholds, compared)

    def _decide_triggers(self) -> list[TriggerGate]:
        if self._settings.shard is not None:
            reason = "sharded: merge the reports"
            return [no_trigger_decision(cell, reason) for cell in self.trigger_cells]
        compared = self._trigger_baselines if self._settings.compare == "baseline" else None
        return decide_triggers(self.trigger_cells, self._settings.thresholds, compared)


def _reason(report: pytest.TestReport) -> str:
    """Return why a trial was skipped; pytest stores path, line and reason."""
    assert isinstance(report.longrepr, tuple)
    return report.longrepr[2].removeprefix("Skipped: ")
