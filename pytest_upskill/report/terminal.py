"""The terminal's view: words for the baseline arm, a header, and the table of cells."""

from __future__ import annotations

import pytest

from pytest_upskill.ledger import NOT_MEASURED, Ledger
from pytest_upskill.report.notes import notes
from pytest_upskill.report.table import table
from pytest_upskill.settings import Settings


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
        if record is None or report.failed or record.result.arm == "with_skill":
            return None
        # Any category but "passed" would turn pytest's closing line yellow.
        if record.result.passed:
            return "passed", "+", ("BASE HIT", {"cyan": True})
        return "passed", "-", ("BASE MISS", {"cyan": True})

    def pytest_terminal_summary(
        self, terminalreporter: pytest.TerminalReporter, config: pytest.Config
    ) -> None:
        """Write a row for each cell, with -v one for each case too."""
        self._figures(terminalreporter, config)
        # Also with -q: nobody is to find a file changed without having been told.
        for line in self._ledger.baselines:
            terminalreporter.line(line)

    def _figures(self, terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
        cells = self._ledger.cells
        if not cells or config.get_verbosity() < 0:
            return
        failed = {gate.nodeid for gate in self._ledger.gates if gate.outcome == "failed"}
        arms = (
            "without -> old -> with" if any(cell.old_skill for cell in cells) else "without -> with"
        )
        terminalreporter.section(f"skills: {arms}", "=", bold=True)
        width = config.get_terminal_writer().fullwidth
        for line, cell in table(cells, width, cases=config.get_verbosity() > 0):
            red = cell is not None and f"{cell.path}::gate[{cell.model}]" in failed
            green = cell is not None and not red and cell.verdict == "helps"
            terminalreporter.line(line, red=red, green=green)
        for line in notes(self._ledger.gates, verbose=config.get_verbosity() > 0):
            terminalreporter.line(line)
        if self._ledger.not_measured:
            terminalreporter.line(
                f"exit code {NOT_MEASURED}: nothing has failed, but not all was measured",
                yellow=True,
            )
