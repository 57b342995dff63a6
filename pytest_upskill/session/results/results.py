"""The cells of a session and their gates, decided and reported after the last test."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_upskill.figures.gate import Gate, TriggerGate, decide_gates, skipped_gate
from pytest_upskill.report.junit.properties import gate_properties
from pytest_upskill.session.options.settings import SETTINGS
from pytest_upskill.session.results.cells import Records, cells_of, trigger_cells_of
from pytest_upskill.session.results.gate_items import report_gate
from pytest_upskill.trials.trial import runs_of

if TYPE_CHECKING:
    from pytest_upskill.figures.baseline import Baselines
    from pytest_upskill.figures.baseline_update import Update

_SHARDED = "sharded: merge the reports"

RESULTS = pytest.StashKey["Results"]()
"""Results of the session; absent in workers of pytest-xdist."""


class Results:
    """Plugin with the results of trials, cells and gates, in the process that reports them."""

    def __init__(self, config: pytest.Config) -> None:
        self.records = Records()
        self.gates: list[Gate] = []
        """The gate of each cell, once all trials have run."""
        self.trigger_gates: list[TriggerGate] = []
        """The gate of each trigger cell, likewise."""
        self.baselines: list[Update] = []
        """Outcome of each baseline update, under --upskill-baseline-update."""
        self.orphans: list[str] = []
        """One line for each baseline file that can be deleted."""
        self.collection_failed = False
        self._config = config
        self._settings = config.stash[SETTINGS]
        self._old = self._read_baselines(self._settings.baselines)
        self._old_triggers = self._read_baselines(self._settings.trigger_baselines)

    @property
    def decisions(self) -> list[Gate | TriggerGate]:
        """The gates of both kinds."""
        return [*self.gates, *self.trigger_gates]

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Record that a file could not be collected."""
        self.collection_failed |= report.failed

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
            self._decide()
            self.orphans = list(self._unused_baselines())
            session.testscollected += len(self.decisions)
            for gate in self.decisions:
                report_gate(session, gate, gate_properties(gate))
            if self._settings.baseline_update:
                self.baselines = self._write_baselines()

    def _decide(self) -> None:
        settings = self._settings
        cells = cells_of(self.records, settings, self._config.rootpath)
        trigger_cells = trigger_cells_of(self.records, settings)
        if settings.shard is not None:
            self.gates = [skipped_gate(cell, _SHARDED) for cell in cells]
            self.trigger_gates = [skipped_gate(cell, _SHARDED) for cell in trigger_cells]
            return
        # Baselines that are only to be updated decide nothing.
        compares = settings.compare == "baseline"
        old, old_triggers = (self._old, self._old_triggers) if compares else (None, None)
        self.gates = decide_gates(cells, settings.thresholds, old)
        self.trigger_gates = decide_gates(trigger_cells, settings.thresholds, old_triggers)

    def _read_baselines(self, folder: Path) -> Baselines | None:
        """Return the baselines of the chosen models in a folder, None if none are needed.

        Raises:
            pytest.UsageError: A baseline cannot be used.
        """
        settings = self._settings
        if settings.compare != "baseline" and not settings.baseline_update:
            return None
        # Imported here: most sessions use no baselines.
        from pytest_upskill.figures.baseline import BaselineError, read_baselines

        try:
            models = [model.label for model in settings.models]
            return read_baselines(folder, models, settings.project)
        except BaselineError as error:
            raise pytest.UsageError(str(error)) from None

    def _unused_baselines(self) -> Iterator[str]:
        """Yield a line for each baseline file that can be deleted."""
        for baselines, gates in ((self._old, self.gates), (self._old_triggers, self.trigger_gates)):
            if baselines is None:
                continue
            from pytest_upskill.figures.baseline import key_of

            for baseline, reason in baselines.unused([key_of(gate.cell) for gate in gates]):
                cell = f"{baseline.key.skill} on {baseline.key.model}"
                yield f"{cell}: {reason}: delete the baseline, {baseline.file}"

    def _write_baselines(self) -> list[Update]:
        """Write the baselines of all cells, and return the outcome of each."""
        from pytest_upskill.figures.baseline_update import Update, update_baselines

        settings = self._settings
        updates = [
            *update_baselines(
                [gate.cell for gate in self.gates],
                settings.baselines,
                runs={model.label: runs_of(model, settings.runs) for model in settings.models},
            ),
            *update_baselines(
                [gate.cell for gate in self.trigger_gates],
                settings.trigger_baselines,
                runs={
                    model.label: runs_of(model, settings.runs, chooses=True)
                    for model in settings.models
                },
                what="trigger baseline",
            ),
        ]
        return updates or [Update(text="no baseline written: nothing was measured")]
