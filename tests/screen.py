"""A program on a pseudo-terminal, and what a reader of its screen sees."""

from __future__ import annotations

import os
import pty
import select
import signal
import termios
from contextlib import suppress
from pathlib import Path

import pyte

from tests.forked import Forked

PATIENCE_S = 60.0
"""For what comes at once, on a machine that does other things too."""


class Screen:
    """A terminal with a process on it."""

    def __init__(
        self, command: list[str], folder: Path, *, columns: int, rows: int, **variables: str
    ) -> None:
        self._screen = pyte.Screen(columns, rows)
        self._stream = pyte.ByteStream(self._screen)
        self.written = self._unread = b""
        self._terminal, process_side = pty.openpty()
        termios.tcsetwinsize(process_side, (rows, columns))
        environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
        environment |= {"TERM": "xterm", "OPENAI_API_KEY": "none"} | variables
        self.process = Forked(command, folder, environment, [process_side] * 3, leads=True)
        os.close(process_side)

    @property
    def lines(self) -> list[str]:
        return [line.rstrip() for line in self._screen.display]

    def wait_for(self, words: str) -> str:
        """Read until a line holds the words; return it."""
        while True:
            for line in self.lines:
                if words in line:
                    return line
            assert self._read(), f"{words!r} never came:\n" + "\n".join(self.lines)

    def type(self, keys: str) -> None:
        """Type keys, such as ``y\\n``, or control characters as a keyboard sends them."""
        os.write(self._terminal, keys.encode())

    def wait_for_the_end(self) -> list[str]:
        while self._read():
            pass
        self.process.wait(PATIENCE_S)
        return self.lines

    def close(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.kill()
        self.process.wait()
        os.close(self._terminal)

    def _read(self) -> bool:
        """Show one more line, so that none scrolls past unseen; return whether there was one."""
        if not self._unread and not self._fill():
            return False
        line, end, self._unread = self._unread.partition(b"\n")
        self._stream.feed(line + end)
        return True

    def _fill(self) -> bool:
        ready, _, _ = select.select([self._terminal], [], [], PATIENCE_S)
        assert ready, "nothing came:\n" + "\n".join(self.lines)
        with suppress(OSError):  # how Linux tells that nobody holds the other side any more
            if data := os.read(self._terminal, 65536):
                self.written += data
                self._unread = data
                return True
        return False
