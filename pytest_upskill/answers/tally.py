"""Progress of answers: their counts, and the text of the line that shows them."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future

from pytest_upskill.answers.in_flight import ASKING, InFlight
from pytest_upskill.checks import Compile, Run
from pytest_upskill.figures.wording import money
from pytest_upskill.grading.grade import Answer

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
    for pause in activity.pauses():
        yield f"waiting {math.ceil(pause.seconds)} s for {pause.host} ({pause.why})"
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
