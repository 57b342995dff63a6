"""Progress of answers that somebody waits for: counts, and the parts of a line that shows them."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future

from pytest_upskill.cells.wording import money
from pytest_upskill.checks import Compile, Run
from pytest_upskill.grading.grade import Answer
from pytest_upskill.spending.in_flight import ASKING, InFlight

REFRESH_S = 0.5
"""Seconds between two updates of a line."""

_LONG_S = 10.0
"""Age in seconds from which the oldest request is shown."""


class CostTally:
    """Counts of the answers that have arrived; one thread at a time may read them."""

    def __init__(self, answers: Iterable[Future[Answer]]) -> None:
        self.total = self.done = self.recorded = 0
        self.paid: list[float | None] = []
        """Dollars for each completion that was requested; None if its price is unknown."""
        # Appended to by the thread that completes an answer.
        self._settled: deque[Future[Answer]] = deque()
        for future in answers:
            self.total += 1
            future.add_done_callback(self._settled.append)

    def count(self) -> None:
        """Add the answers that have arrived since the last call."""
        while self._settled:
            self._add(self._settled.popleft())

    def _add(self, future: Future[Answer]) -> None:
        self.done += 1
        if future.cancelled() or future.exception() is not None:
            return
        answer = future.result()
        for completion in (answer.completion, answer.judgement):
            if completion is not None and not completion.replayed:
                self.paid.append(completion.cost_usd)
        self.recorded += answer.completion is not None and answer.completion.replayed


def parts(tally: CostTally, activity: InFlight, what: str = "upskill") -> Iterator[str]:
    """Yield the parts of the progress line, most important part first.

    Args:
        tally: The answers that are waited for.
        activity: What is in progress.
        what: What they are for.
    """
    yield f"{what}: {tally.done}/{tally.total} answers"
    for pause in activity.pauses():
        yield f"waiting {math.ceil(pause.seconds)} s for {pause.host} ({pause.why})"
    for check, word in ((Compile.name, "compiling"), (Run.name, "running")):
        if builds := activity.ages(check):
            yield f"{word} {len(builds)}"
    if ages := activity.ages(ASKING):
        oldest = f" (the oldest for {max(ages):.0f} s)" if max(ages) >= _LONG_S else ""
        yield f"{len(ages)} in flight{oldest}"
    if tally.recorded:
        yield f"{tally.recorded} recorded"
    known = [cost for cost in tally.paid if cost is not None]
    if known and len(known) == len(tally.paid):
        yield money(sum(known))
