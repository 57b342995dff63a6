"""One line for each failure under ``--tb=line``, like pytest's lines for Python failures."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

import pytest

from pytest_upskill.cells.wording import ANSWER


@dataclass(frozen=True, slots=True)
class _Crash:
    """Place and message of a failed case or gate, which pytest prints as the crash line."""

    place: str
    message: str

    def __str__(self) -> str:
        return f"{self.place}: {self.message}"


@dataclass(frozen=True, slots=True)
class _OneLine:
    """A failure of which pytest prints only the crash line."""

    reprcrash: _Crash

    def toterminal(self, _: object) -> None:
        """Print nothing: pytest prints the crash line."""

    def __str__(self) -> str:
        return str(self.reprcrash)


class OneLineFailures:
    """Plugin that shortens failed cases and gates on the terminal after all reports are written."""

    # First, so outermost: pytest prints the failures before it calls other plugins.
    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_terminal_summary(
        self, terminalreporter: pytest.TerminalReporter
    ) -> Generator[None, object, object]:
        """Replace the failures to be printed by single lines."""
        for report in terminalreporter.stats.get("failed", ()):
            if hasattr(report, "upskill") and isinstance(report.longrepr, str):
                path, line, _ = report.location
                message = report.longrepr.partition("\n")[0]
                report.longrepr = _OneLine(_Crash(f"{path}:{(line or 0) + 1}", message))
                report.sections = [part for part in report.sections if part[0] != ANSWER]
        return (yield)
