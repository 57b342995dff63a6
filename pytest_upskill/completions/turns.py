"""Turns at the interpreter lock, for an event loop and the thread that waits for what it makes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from selectors import DefaultSelector, SelectorKey
from typing import Any

_BUSY_S = 0.05
"""Seconds for which a busy loop may keep to itself what it has made."""

_REST_S = 0.05
"""Seconds for which it rests at most."""


class Turns(DefaultSelector):
    """The selector of an event loop on a thread of its own, and where another waits for results.

    Python lets go of its lock in every system call. Two busy threads wake each other for nothing
    then, a dozen times for each completion and its item: a sixth of a run that is bound by CPU. So
    results are given out where the loop has nothing left to do, or has been busy for 50 ms. If the
    other thread waited for them, the loop rests until that waits again, 50 ms at most: what it does
    with them may be slow.
    """

    def __init__(self) -> None:
        super().__init__()
        self._results: list[Callable[[], None]] = []
        self._due = 0.0
        self._awaited: Sequence[Future[Any]] = ()
        self._loops = threading.Event()
        self._loops.set()

    @contextmanager
    def waiting(self, futures: Sequence[Future[Any]]) -> Iterator[None]:
        """Let the loop work until it has what another thread waits for."""
        self._awaited = futures
        self._loops.set()
        try:
            yield
        finally:
            self._awaited = ()

    def give_out(self, result: Callable[[], None]) -> None:
        """Settle a future, when it is time to; called by the loop."""
        if not self._results:
            self._due = time.monotonic() + _BUSY_S
        self._results.append(result)

    def select(self, timeout: float | None = None) -> list[tuple[SelectorKey, int]]:
        """Wait for events as ever; between two turns of the loop, give the other thread its own."""
        if not self._results and self._loops.is_set():
            return super().select(timeout)
        events = super().select(0)
        idle = not events and timeout != 0
        if self._results and (idle or time.monotonic() >= self._due):
            self.settle()
        if not self._loops.wait(_REST_S):
            self._loops.set()
        # Even if there are none: what was given out may have left the loop something to do.
        return events

    def settle(self) -> None:
        """Give out all there is."""
        results, self._results = self._results, []
        # Both before the other thread is awake: it may be back, waiting, before this goes on.
        awaited = self._awaited
        self._loops.clear()
        for settle in results:
            settle()
        if not awaited or not all(future.done() for future in awaited):
            self._loops.set()
