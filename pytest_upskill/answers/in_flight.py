"""Requests and waits in progress, recorded on one thread and displayed on another."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

ASKING = "asking"
"""The activity of waiting for the reply to a request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    """A wait before a retry."""

    host: str
    why: str
    """The reason in a word or two."""
    seconds: float
    """Remaining seconds."""


class _Activity(NamedTuple):
    kind: str
    began: float


class _TimedPause(NamedTuple):
    end: float
    host: str
    why: str


class InFlight:
    """A record of activities in progress.

    Every change is a single operation on a dict or a single assignment, so reads need no lock.

    Args:
        clock: A monotonic clock in seconds.
    """

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._activities: dict[object, _Activity] = {}
        self._pauses: tuple[_TimedPause, ...] = ()

    @contextmanager
    def doing(self, kind: str) -> Iterator[None]:
        """Record an activity for the duration of the block; from any thread."""
        token = object()
        self._activities[token] = _Activity(kind, self._clock())
        try:
            yield
        finally:
            del self._activities[token]

    def pause(self, host: str, why: str, seconds: float) -> None:
        """Record a wait in seconds; from one thread only."""
        now = self._clock()
        in_progress = (pause for pause in self._pauses if pause.end > now)
        self._pauses = (*in_progress, _TimedPause(now + seconds, host, why))

    def ages(self, kind: str) -> list[float]:
        """Return the seconds since the start of each activity of a kind that is in progress."""
        now = self._clock()
        activities = tuple(self._activities.values())
        return [now - activity.began for activity in activities if activity.kind == kind]

    def pauses(self) -> list[Pause]:
        """Return the waits in progress; for each host and reason, the one that ends first."""
        now = self._clock()
        soonest: dict[tuple[str, str], float] = {}
        for end, host, why in sorted(self._pauses):
            if end > now:
                soonest.setdefault((host, why), end)
        return [
            Pause(host=host, why=why, seconds=end - now) for (host, why), end in soonest.items()
        ]
