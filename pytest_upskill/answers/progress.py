"""Progress of answers: what is in flight, counts, and the text of the line that shows them.

Requests and waits are recorded on one thread and displayed on another.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager

from pytest_upskill.checks.builds import Compile, Run
from pytest_upskill.figures.wording import money
from pytest_upskill.grading.grade import Answer

ASKING = "asking"
"""The activity of waiting for the reply to a request."""


class InFlight:
    """A record of activities in progress.

    Every change is a single operation on a dict or a single assignment, so reads need no lock.

    Args:
        clock: A monotonic clock in seconds.
    """

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._activities: dict[object, tuple[str, float]] = {}
        """Kind and beginning of each."""
        self._pauses: tuple[tuple[float, str, str], ...] = ()
        """End, host and reason of each wait before a retry."""

    @contextmanager
    def doing(self, kind: str) -> Iterator[None]:
        """Record an activity for the duration of the block; from any thread."""
        token = object()
        self._activities[token] = kind, self._clock()
        try:
            yield
        finally:
            del self._activities[token]

    def pause(self, host: str, why: str, seconds: float) -> None:
        """Record a wait before a retry in seconds; from one thread only."""
        now = self._clock()
        in_progress = (pause for pause in self._pauses if pause[0] > now)
        self._pauses = (*in_progress, (now + seconds, host, why))

    def ages(self, kind: str) -> list[float]:
        """Return the seconds since the start of each activity of a kind that is in progress."""
        now = self._clock()
        activities = tuple(self._activities.values())
        return [now - began for each, began in activities if each == kind]

    def pauses(self) -> dict[tuple[str, str], float]:
        """Return the seconds until the first wait ends for each host and reason."""
        now = self._clock()
        soonest: dict[tuple[str, str], float] = {}
        for end, host, why in sorted(self._pauses):
            if end > now:
                soonest.setdefault((host, why), end - now)
        return soonest


REFRESH_S = 0.5
"""Seconds between two updates of a line."""

_LONG_S = 10.0
"""Age in seconds from which the oldest request is shown."""


class CostTally:
    """Counts of the answers that have arrived; one thread at a time may read them."""

    def __init__(self, answers: Iterable[Future[Answer]]) -> None:
        self.total = self.done = self.replayed = 0
        self.paid: list[float | None] = []
        """Dollars for each completion that was requested; None if its price is unknown."""
        # The thread that completes an answer appends to it.
        self._arrived: deque[Future[Answer]] = deque()
        for future in answers:
            self.total += 1
            future.add_done_callback(self._arrived.append)

    def count(self) -> None:
        """Add the answers that have arrived since the last call."""
        while self._arrived:
            self._add(self._arrived.popleft())

    def _add(self, future: Future[Answer]) -> None:
        self.done += 1
        if future.cancelled() or future.exception() is not None:
            return
        answer = future.result()
        for completion in (answer.completion, answer.judgement):
            if completion is not None and not completion.replayed:
                self.paid.append(completion.cost_usd)
        if answer.completion is not None and answer.completion.replayed:
            self.replayed += 1


def parts(tally: CostTally, activity: InFlight, label: str = "upskill") -> Iterator[str]:
    """Yield the parts of the progress line, most important part first.

    Args:
        tally: The counts of answers.
        activity: The requests, waits and builds in progress.
        label: The text at the start of the line.
    """
    yield f"{label}: {tally.done}/{tally.total} answers"
    for (host, why), seconds in activity.pauses().items():
        yield f"waiting {math.ceil(seconds)} s for {host} ({why})"
    for check, word in ((Compile.name, "compiling"), (Run.name, "running")):
        if builds := activity.ages(check):
            yield f"{word} {len(builds)}"
    if ages := activity.ages(ASKING):
        oldest = f" (the oldest for {max(ages):.0f} s)" if max(ages) >= _LONG_S else ""
        yield f"{len(ages)} in flight{oldest}"
    if tally.replayed:
        yield f"{tally.replayed} recorded"
    known = [cost for cost in tally.paid if cost is not None]
    if known and len(known) == len(tally.paid):
        yield money(sum(known))
