"""A line that says how far a run is: below what pytest writes, or, off a terminal, now and then."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import accumulate
from typing import Protocol

import pytest

from pytest_upskill.cells.wording import columns
from pytest_upskill.sanitize.safe_text import safe

FIRST_S = 10.0
"""Seconds of silence before a line off a terminal."""
AGAIN_S = 60.0
"""Seconds from one such line to the next."""

# The row below, made by scrolling if there is none, and back to where pytest goes on. No column is
# counted for that: the line above may be broken over rows, and a character be two columns wide.
_BELOW = "\x1bD\x1b[A\x1b7\x1b[B\r\x1b[2K"
_BACK = "\x1b8"


class Line(Protocol):
    """Where to say it."""

    def say(self, parts: Sequence[str]) -> None:
        """Say how far the run is, most important part first."""
        ...

    def hush(self) -> None:
        """Make way for what pytest writes."""
        ...


def line_of(config: pytest.Config) -> Line:
    """Choose by what pytest writes to, and how much is wanted of it."""
    plugins = config.pluginmanager
    reporter: pytest.TerminalReporter | None = plugins.get_plugin("terminalreporter")
    if reporter is None or config.get_verbosity() < 0:
        return _Silence()
    terminal = _Terminal(config, reporter)
    return LiveLine(terminal) if terminal.moves_cursor else PlainLines(terminal)


class _Terminal:
    """Pytest's reporter, past the capture of a test that is being set up."""

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
    """For whoever asked for quiet."""

    def say(self, parts: Sequence[str]) -> None:
        pass

    def hush(self) -> None:
        pass


class LiveLine:
    """One row of a terminal that changes and goes away."""

    def __init__(self, terminal: _Terminal) -> None:
        self._terminal = terminal
        self._shown = False

    def say(self, parts: Sequence[str]) -> None:
        """Show the parts that fit in one row."""
        self._write(fitting(parts, self._terminal.writer.fullwidth - 1))
        self._shown = True

    def hush(self) -> None:
        """Take the row away."""
        if self._shown:
            self._write("")
            self._shown = False

    def _write(self, text: str) -> None:
        with self._terminal.open():
            self._terminal.reporter.write_raw(f"{_BELOW}{text}{_BACK}", flush=True)


class PlainLines:
    """Lines that stay, and hence few: in a log that nobody watches, a wait must not be a hang."""

    def __init__(self, terminal: _Terminal) -> None:
        self._terminal = terminal
        self._due = time.monotonic() + FIRST_S

    def say(self, parts: Sequence[str]) -> None:
        """Write a line if one is due."""
        if time.monotonic() < self._due:
            return
        with self._terminal.open():
            if self._terminal.verbose:
                # The test's name is written again before its result.
                self._terminal.reporter.ensure_newline()
            elif self._terminal.writer.width_of_current_line:
                self._terminal.writer.line()
            self._terminal.writer.line(safe(", ".join(parts)))
            self._terminal.writer.flush()
        self._due = time.monotonic() + AGAIN_S

    def hush(self) -> None:
        """Count the silence anew."""
        self._due = max(self._due, time.monotonic() + FIRST_S)


def fitting(parts: Iterable[str], width: int) -> str:
    """Join as many of the parts as there is room for in ``width`` columns."""
    joined = accumulate(map(safe, parts), "{}, {}".format)
    return max((line for line in joined if columns(line) <= width), key=len, default="")
