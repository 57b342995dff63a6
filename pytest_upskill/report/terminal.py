"""The terminal's view: words for the baseline arm, a header, and the table of cells."""

from __future__ import annotations

import pytest

from pytest_upskill.cells import Cell
from pytest_upskill.gate import Gate
from pytest_upskill.ledger import Ledger
from pytest_upskill.report.table import table
from pytest_upskill.settings import Settings
from pytest_upskill.stats import runs_needed


class Terminal:
    """Writes through pytest's own reporter, so that -q, -v and --color mean what they always do."""

    def __init__(self, settings: Settings, ledger: Ledger) -> None:
        self._settings = settings
        self._ledger = ledger

    def pytest_report_header(self) -> str:
        """Say which models the cases run on, and how often."""
        models = ", ".join(f"{model.label} ({model.resolved})" for model in self._settings.models)
        return f"upskill: {models}; runs: {self._settings.runs}"

    def pytest_report_teststatus(
        self, report: pytest.TestReport
    ) -> tuple[str, str, tuple[str, dict[str, bool]]] | None:
        """Show a trial without the skill as passed, in a letter and words of its own."""
        record = getattr(report, "upskill", None)
        if record is None or report.failed or record["result"]["arm"] == "with_skill":
            return None
        # Any category but "passed" would turn pytest's closing line yellow.
        if record["passed"]:
            return "passed", "+", ("BASE HIT", {"cyan": True})
        return "passed", "-", ("BASE MISS", {"cyan": True})

    def pytest_terminal_summary(
        self, terminalreporter: pytest.TerminalReporter, config: pytest.Config
    ) -> None:
        """Write a row for each cell, with -v one for each case too."""
        cells = self._ledger.cells
        if not cells or config.get_verbosity() < 0:
            return
        failed = {gate.nodeid for gate in self._ledger.gates if gate.outcome == "failed"}
        terminalreporter.section("skills: without -> with", "=", bold=True)
        width = config.get_terminal_writer().fullwidth
        for line, cell in table(cells, width, cases=config.get_verbosity() > 0):
            red = cell is not None and f"{cell.path}::gate[{cell.model}]" in failed
            green = cell is not None and not red and cell.verdict == "helps"
            terminalreporter.line(line, red=red, green=green)
        for line in _notes(cells, self._ledger.gates):
            terminalreporter.line(line)


def _notes(cells: list[Cell], gates: list[Gate]) -> list[str]:
    """Say what the table cannot: why a gate is open, and what would bring a verdict."""
    notes = [
        f"{gate.cell.skill} on {gate.cell.model}: {gate.text}"
        for gate in gates
        if gate.outcome == "skipped"
    ]
    needed = [
        runs
        for cell in cells
        if cell.verdict == "too few runs" and (runs := runs_needed(cell.counts)) is not None
    ]
    if needed:
        notes.append(
            f"too few runs: --upskill-runs {min(needed)} would probably tell in "
            f"{'one cell' if len(needed) == 1 else 'some cells'}"
        )
    return notes
