"""The cells of a session and their gates, decided and reported after the last test."""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING

import pytest

from pytest_upskill.cells.cell import Cell
from pytest_upskill.cells.gate import Gate, decide_all, no_decision
from pytest_upskill.cells.trigger_cell import TriggerCell
from pytest_upskill.cells.trigger_gate import TriggerGate, decide_triggers, no_trigger_decision
from pytest_upskill.report.junit.properties import cell_properties, trigger_properties
from pytest_upskill.session.options.settings import Settings
from pytest_upskill.session.results.baselines import baselines_of, orphans, write_baselines
from pytest_upskill.session.results.cells import cells_of, trigger_cells_of
from pytest_upskill.session.results.gate_items import report_gate
from pytest_upskill.session.results.records import Records

if TYPE_CHECKING:
    from pytest_upskill.cells.baseline_update import Update

_SHARDED = "sharded: merge the reports"


class Results:
    """Results of trials, cells and gates, in the only process or the pytest-xdist controller."""

    def __init__(self, config: pytest.Config, settings: Settings) -> None:
        self.records = Records()
        self.cells: list[Cell] = []
        self.trigger_cells: list[TriggerCell] = []
        self.gates: list[Gate] = []
        """Decision about each cell, once all trials have run."""
        self.trigger_gates: list[TriggerGate] = []
        """Decision about each trigger cell."""
        self.baselines: list[Update] = []
        """Outcome of each baseline update, under --upskill-baseline-update."""
        self.orphans: list[str] = []
        """One line for each baseline file that can be deleted."""
        self._config = config
        self._settings = settings
        self._baselines = baselines_of(settings, settings.baselines)
        self._trigger_baselines = baselines_of(settings, settings.trigger_baselines)

    @property
    def decisions(self) -> list[Gate | TriggerGate]:
        """The gates of both kinds."""
        return [*self.gates, *self.trigger_gates]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Record a trial's result."""
        self.records.add(report)

    # Last, so innermost: gates are reported before the terminal ends its progress line.
    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtestloop(self, session: pytest.Session) -> Generator[None, object, object]:
        """Report the gate of every cell after the last test, also if -x stopped the session."""
        try:
            return (yield)
        finally:
            self.cells = cells_of(self.records, self._settings, self._config.rootpath)
            self.trigger_cells = trigger_cells_of(self.records, self._settings)
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

    def _decide(self) -> list[Gate]:
        if self._settings.shard is not None:
            return [no_decision(cell, _SHARDED) for cell in self.cells]
        compared = self._baselines if self._settings.compare == "baseline" else None
        return decide_all(self.cells, self._settings.thresholds, compared)

    def _decide_triggers(self) -> list[TriggerGate]:
        if self._settings.shard is not None:
            return [no_trigger_decision(cell, _SHARDED) for cell in self.trigger_cells]
        compared = self._trigger_baselines if self._settings.compare == "baseline" else None
        return decide_triggers(self.trigger_cells, self._settings.thresholds, compared)
