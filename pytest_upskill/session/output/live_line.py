"""A progress line: one row below pytest's output, or occasional lines if not on a terminal."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Protocol

import pytest

from pytest_upskill.cells.wording import fitting
from pytest_upskill.sanitize.safe_text import safe

FIRST_S = 10.0
"""Seconds without output before the first line, if not on a terminal."""
AGAIN_S = 60.0
"""Seconds between such lines."""

# Escape sequences: move to the row below, scrolling if needed, and back to the saved position.
# They need no column numbers: pytest's line may wrap, and a character may be two columns wide.
_BELOW = "\x1bD\x1b[A\x1b7\x1b[B\r\x1b[2K"
_BACK = "\x1b8"


class Line(Protocol):
    """Output for progress."""

    def show(self, parts: Sequence[str]) -> None:
        """Print the progress, most important part first."""
        ...

    def clear(self) -> None:
        """Clear the line before pytest prints."""
        ...


def line_of(config: pytest.Config) -> Line:
    """Return the output for progress that fits pytest's terminal and verbosity."""
    plugins = config.pluginmanager
    reporter: pytest.TerminalReporter | None = plugins.get_plugin("terminalreporter")
    if reporter is None or config.get_verbosity() < 0:
        return _Silence()
    terminal = _Terminal(config, reporter)
    return LiveLine(terminal) if terminal.moves_cursor else PlainLines(terminal)


class _Terminal:
    """Pytest's terminal reporter, bypassing output capture."""

    def __init__(self, config: pytest.Config, reporter: pytest.TerminalReporter) -> None:
        self.reporter = reporter
        self.writer = config.get_terminal_writer()
        self.verbose = config.get_verbosity() > 0
        self._capture = config.pluginmanager.get_plugin("capturemanager")

    @property
    def moves_cursor(self) -> bool:
        return bool(self.reporter.isatty) and os.environ.get("TERM", "dumb") != "dumb"

    def open(self) -> AbstractContextManager[object]:
        if self._capture is None:
            return nullcontext()
        opened: AbstractContextManager[object] = self._capture.global_and_fixture_disabled()
        return opened


class _Silence:
    """No progress output, for -q and without a terminal reporter."""

    def show(self, parts: Sequence[str]) -> None:
        pass

    def clear(self) -> None:
        pass


class LiveLine:
    """One row of a terminal that is updated and finally cleared."""

    def __init__(self, terminal: _Terminal) -> None:
        self._terminal = terminal
        self._shown = False

    def show(self, parts: Sequence[str]) -> None:
        """Print the parts that fit in one row."""
        self._write(fitting(parts, self._terminal.writer.fullwidth - 1))
        self._shown = True

    def clear(self) -> None:
        """Clear the row."""
        if self._shown:
            self._write("")
            self._shown = False

    def _write(self, text: str) -> None:
        with self._terminal.open():
            self._terminal.reporter.write_raw(f"{_BELOW}{text}{_BACK}", flush=True)


class PlainLines:
    """Occasional lines for a log, so that a long wait does not look like a hang."""

    def __init__(self, terminal: _Terminal) -> None:
        self._terminal = terminal
        self._due = time.monotonic() + FIRST_S

    def show(self, parts: Sequence[str]) -> None:
        """Print a line if one is due."""
        if time.monotonic() < self._due:
            return
        with self._terminal.open():
            if self._terminal.verbose:
                # pytest prints the test's name again before its result.
                self._terminal.reporter.ensure_newline()
            elif self._terminal.writer.width_of_current_line:
                self._terminal.writer.line()
            self._terminal.writer.line(safe(", ".join(parts)))
            self._terminal.writer.flush()
        self._due = time.monotonic() + AGAIN_S

    def clear(self) -> None:
        """Restart the time without output."""
        self._due = max(self._due, time.monotonic() + FIRST_S)
