"""What goes on while answers are fetched, noted on one thread and told on another."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

ASKING = "asking"
"""What is done while a request is at its host."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    """A wait before a request is sent again."""

    host: str
    why: str
    seconds: float
    """How long it will go on."""


class InFlight:
    """What was begun and has not ended.

    A change is one operation on a dict or one assignment, so reading needs no lock.

    Args:
        clock: Seconds, monotonic.
    """

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._begun: dict[object, tuple[str, float]] = {}
        self._pauses: tuple[tuple[float, str, str], ...] = ()

    @contextmanager
    def doing(self, what: str) -> Iterator[None]:
        """Note something for as long as it goes on; from any thread."""
        token = object()
        self._begun[token] = what, self._clock()
        try:
            yield
        finally:
            del self._begun[token]

    def pause(self, host: str, why: str, seconds: float) -> None:
        """Note a wait; from one thread only."""
        now = self._clock()
        going_on = (each for each in self._pauses if each[0] > now)
        self._pauses = (*going_on, (now + seconds, host, why))

    def ages(self, what: str) -> list[float]:
        """Tell for how many seconds each that goes on has done so."""
        now = self._clock()
        return [now - since for word, since in tuple(self._begun.values()) if word == what]

    def pauses(self) -> list[Pause]:
        """List what is waited for: at each host, for each reason, the wait that ends first."""
        now = self._clock()
        soonest: dict[tuple[str, str], float] = {}
        for end, host, why in sorted(self._pauses):
            if end > now:
                soonest.setdefault((host, why), end)
        return [
            Pause(host=host, why=why, seconds=end - now) for (host, why), end in soonest.items()
        ]
