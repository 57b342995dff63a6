"""How far a run is, said while it waits for answers, so that no wait looks like a hang."""

from __future__ import annotations

import math
import threading
from collections import deque
from collections.abc import Generator, Iterable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager

import pytest

from pytest_upskill.cells.wording import money
from pytest_upskill.checks import Compile, Run
from pytest_upskill.completions.prefetch import Fetcher
from pytest_upskill.completions.trial_runner import Key
from pytest_upskill.grading.grade import Answer
from pytest_upskill.session.output.live_line import line_of
from pytest_upskill.session.preflight import RESOURCES
from pytest_upskill.spending.in_flight import ASKING, Activity
from pytest_upskill.trial import Trial

LOOK_S = 0.5
"""Seconds between two looks at what goes on."""

_LONG_S = 10.0
"""Seconds after which a request is one that takes long."""


class Progress:
    """Waits for answers, and says meanwhile what is waited for.

    Args:
        config: Whose terminal to write to.
        fetcher: What fetches the answers.
        trials: All that are fetched, by node id.
    """

    def __init__(
        self, config: pytest.Config, fetcher: Fetcher[Key, Answer], trials: Mapping[str, Trial]
    ) -> None:
        self._line = line_of(config)
        self._fetcher = fetcher
        self._activity = config.stash[RESOURCES].activity
        self._answers = {
            nodeid: [fetcher.future((nodeid, run)) for run in range(trial.runs)]
            for nodeid, trial in trials.items()
        }
        self._tally = Tally(future for runs in self._answers.values() for future in runs)

    def wait(self, nodeid: str) -> list[Answer]:
        """Wait for every run of a trial."""
        futures = self._answers[nodeid]
        try:
            while not self._fetcher.wait(futures, LOOK_S):
                self.look()
        finally:
            self.hush()
        return [future.result() for future in futures]

    def look(self) -> None:
        """Say how far the run is, as long as there are answers to come."""
        self._tally.count()
        if self._tally.done < self._tally.total:
            self._line.say(list(parts(self._tally, self._activity)))

    def hush(self) -> None:
        """Make way for what pytest writes."""
        self._line.hush()


class Heartbeat:
    """Looks in the place of a main thread that waits for workers, in turn with what that writes."""

    def __init__(self) -> None:
        self._progress: Progress | None = None
        self._thread: threading.Thread | None = None
        self._turn = threading.RLock()
        self._ended = threading.Event()

    def watch(self, progress: Progress) -> None:
        """Say what there is to say once the first test runs; until then pytest-xdist talks."""
        self._progress = progress

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_logstart(self) -> Generator[None, object, object]:
        """Make way for the name of a file or test; with the first, begin."""
        if self._progress is not None and self._thread is None:
            self._thread = threading.Thread(
                target=self._look, args=(self._progress,), name="upskill-progress", daemon=True
            )
            self._thread.start()
        with self._silence():
            return (yield)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_logreport(self) -> Generator[None, object, object]:
        """Make way for a result."""
        with self._silence():
            return (yield)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_logfinish(self) -> Generator[None, object, object]:
        """Make way for the percentage."""
        with self._silence():
            return (yield)

    @pytest.hookimpl(wrapper=True, tryfirst=True, optionalhook=True)
    def pytest_testnodedown(self) -> Generator[None, object, object]:
        """Make way for what pytest-xdist says of a crashed worker."""
        with self._silence():
            return (yield)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtestloop(self) -> Generator[None, object, object]:
        """End with the last test, also where -x or Ctrl-C made it the last."""
        try:
            return (yield)
        finally:
            self._ended.set()
            with self._silence():
                pass

    @contextmanager
    def _silence(self) -> Iterator[None]:
        with self._turn:
            if self._progress is not None:
                self._progress.hush()
            yield

    def _look(self, progress: Progress) -> None:
        while not self._ended.wait(LOOK_S):
            with self._turn:
                # It may have ended while this thread waited for its turn.
                if not self._ended.is_set():
                    progress.look()


class Tally:
    """Counts the answers that have come; read by one thread at a time."""

    def __init__(self, answers: Iterable[Future[Answer]]) -> None:
        self.total = self.done = self.recorded = 0
        self.paid: list[float | None] = []
        """Dollars for each completion that was asked for; None where its price is not known."""
        # Filled by whichever thread settles an answer.
        self._settled: deque[Future[Answer]] = deque()
        for future in answers:
            self.total += 1
            future.add_done_callback(self._settled.append)

    def count(self) -> None:
        """Add what has come since the last time."""
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


def parts(tally: Tally, activity: Activity) -> Iterator[str]:
    """Say how far it is and what is waited for, most important part first."""
    yield f"upskill: {tally.done}/{tally.total} answers"
    for pause in activity.pauses():
        yield f"waiting {math.ceil(pause.seconds)} s for {pause.host} ({pause.why})"
    for what, word in ((Compile.name, "compiling"), (Run.name, "running")):
        if builds := activity.ages(what):
            yield f"{word} {len(builds)}"
    if asked := activity.ages(ASKING):
        oldest = f" (the oldest for {max(asked):.0f} s)" if max(asked) >= _LONG_S else ""
        yield f"{len(asked)} in flight{oldest}"
    if tally.recorded:
        yield f"{tally.recorded} recorded"
    known = [cost for cost in tally.paid if cost is not None]
    if known and len(known) == len(tally.paid):
        yield money(sum(known))
