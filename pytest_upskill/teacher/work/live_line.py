"""The progress of a command: one row of a terminal, or lines in a log."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from typing import TextIO

from pytest_upskill.cells.wording import fit_parts
from pytest_upskill.sanitize.safe_text import safe_line

_LOG_INTERVAL_S = 60.0
"""Seconds between two lines in a log."""
_DEFAULT_COLUMNS = 80


class LiveLine:
    """The place where a command shows its progress.

    Args:
        out: Where to write.
    """

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._live = out.isatty()
        self._due = time.monotonic() + _LOG_INTERVAL_S

    def show(self, parts: Iterable[str]) -> None:
        """Show as many parts as fit; a log gets all of them once a minute."""
        if self._live:
            self._write(f"\r\x1b[K{fit_parts(parts, self.columns - 1)}")
        elif time.monotonic() >= self._due:
            self._write(f"{safe_line(', '.join(parts))}\n")
            self._due = time.monotonic() + _LOG_INTERVAL_S

    def clear(self) -> None:
        """Remove the line, before something else is written."""
        if self._live:
            self._write("\r\x1b[K")

    @property
    def columns(self) -> int:
        """Width of the terminal; 0 for a log, where lines may be long."""
        if not self._live:
            return 0
        try:
            return os.get_terminal_size(self._out.fileno()).columns or _DEFAULT_COLUMNS
        except (OSError, ValueError):
            return _DEFAULT_COLUMNS

    def _write(self, text: str) -> None:
        self._out.write(text)
        self._out.flush()
