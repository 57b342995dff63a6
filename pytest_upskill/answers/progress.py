"""Progress of answers: what is in flight, counts, and the text of the line that shows them.

Requests and waits are recorded on one thread and displayed on another.
"""

import math
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager

from pytest_upskill.checks.code import Compile, Run
from pytest_upskill.figures.wording import money
from pytest_upskill.grading.grade import Answer
from pytest_upskill.models import Completion

ASKING = "asking"
"""The activity of waiting for the reply to a request."""

JUDGING = "judging"
"""The activity of waiting for the judgement of an answer that is there."""

_FEWEST_STEPS = 3
"""Number of answers and judgements from which the time left is told."""


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
        self.batches: dict[str, str] = {}
        """How far each batch is, by its id."""
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
        # A copy is one operation; the values could change while they are read.
        return [now - began for each, began in self._activities.copy().values() if each == kind]

    def pauses(self) -> dict[tuple[str, str], float]:
        """Return the seconds until the first wait ends for each host and reason."""
        now = self._clock()
        latest_first = sorted(self._pauses, reverse=True)
        return {(host, why): end - now for end, host, why in latest_first if end > now}


REFRESH_S = 0.5
"""Seconds between two updates of a line."""

_LONG_S = 10.0
"""Age in seconds from which the oldest request is shown."""


class Tally:
    """Counts of the answers that have arrived; one thread at a time may read them.

    Args:
        answers: The answers to wait for.
        to_judge: Those of them that a judge decides once they are there.
    """

    def __init__(
        self, answers: Iterable[Future[Answer]], to_judge: Collection[Future[Answer]] = ()
    ) -> None:
        self.total = self.done = self.replayed = self.judged = 0
        self.to_judge = frozenset(to_judge)
        self._began = time.monotonic()
        # The thread that completes an answer appends to it.
        self._arrived: deque[Future[Answer]] = deque()
        for future in answers:
            self.total += 1
            future.add_done_callback(self._arrived.append)

    def count(self) -> None:
        """Add the answers that have arrived since the last call."""
        while self._arrived:
            future = self._arrived.popleft()
            self.done += 1
            self.judged += future in self.to_judge
            if not future.cancelled() and future.exception() is None:
                completion = future.result().completion
                self.replayed += completion is not None and completion.replayed

    def seconds_left(self, waiting_for_judge: int) -> float | None:
        """Return the seconds that the rest will take at the pace so far, None at the beginning."""
        steps = self.total - self.replayed + len(self.to_judge)
        done = self.done - self.replayed + waiting_for_judge + self.judged
        if done < _FEWEST_STEPS:
            return None
        return (time.monotonic() - self._began) * (steps - done) / done


def duration(seconds: float) -> str:
    """Return a rough time: ``40 s``, ``12 min`` or ``3 h``."""
    for unit, length in (("h", 3600), ("min", 60)):
        if seconds >= 1.5 * length:
            return f"{round(seconds / length)} {unit}"
    return f"{math.ceil(seconds)} s"


def progress_parts(
    tally: Tally, activity: InFlight, paid: Sequence[Completion], label: str = "upskill"
) -> Iterator[str]:
    """Yield the parts of the progress line, most important part first.

    Args:
        tally: The counts of answers.
        activity: The requests, waits and builds in progress.
        paid: The completions that were requested so far.
        label: The text at the start of the line.
    """
    judging = len(activity.ages(JUDGING))
    yield f"{label}: {tally.done + judging}/{tally.total} answers"
    if tally.to_judge:
        yield f"{tally.judged}/{len(tally.to_judge)} judged"
    costs = [each.cost_usd for each in paid if each.cost_usd is not None]
    if costs and len(costs) == len(paid):
        yield money(sum(costs))
    if (left := tally.seconds_left(judging)) is not None and tally.done < tally.total:
        yield f"about {duration(left)} left"
    for (host, why), seconds in activity.pauses().items():
        yield f"waiting {math.ceil(seconds)} s for {host} ({why})"
    yield from tuple(activity.batches.values())
    for check, word in ((Compile.name, "compiling"), (Run.name, "running")):
        if builds := activity.ages(check):
            yield f"{word} {len(builds)}"
    if ages := activity.ages(ASKING):
        oldest = f" (the oldest for {max(ages):.0f} s)" if max(ages) >= _LONG_S else ""
        yield f"{len(ages)} in flight{oldest}"
    if tally.replayed:
        yield f"{tally.replayed} recorded"
