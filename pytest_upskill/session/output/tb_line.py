"""One line for each failure under ``--tb=line``, as pytest writes of failures in Python code."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

import pytest

from pytest_upskill.cells.wording import ANSWER


@dataclass(frozen=True, slots=True)
class _Crash:
    """Where a case or gate is and what it failed for: pytest looks for these two names."""

    place: str
    message: str

    def __str__(self) -> str:
        return f"{self.place}: {self.message}"


@dataclass(frozen=True, slots=True)
class _OneLine:
    """A failure of which pytest prints the crash line alone."""

    reprcrash: _Crash

    def toterminal(self, _: object) -> None:
        """Write nothing: the line follows."""

    def __str__(self) -> str:
        return str(self.reprcrash)


class OneLineFailures:
    """Shortens failed cases and gates for the terminal, once all other reports are written."""

    # First, so outermost: pytest prints the failures before it asks plugins for their part.
    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_terminal_summary(
        self, terminalreporter: pytest.TerminalReporter
    ) -> Generator[None, object, object]:
        """Replace what would be printed."""
        for report in terminalreporter.stats.get("failed", ()):
            if hasattr(report, "upskill") and isinstance(report.longrepr, str):
                path, line, _ = report.location
                message = report.longrepr.partition("\n")[0]
                report.longrepr = _OneLine(_Crash(f"{path}:{(line or 0) + 1}", message))
                report.sections = [part for part in report.sections if part[0] != ANSWER]
        return (yield)
