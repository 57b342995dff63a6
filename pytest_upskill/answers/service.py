"""Produce the answers of trials, for every front end; it does not depend on pytest.

How a run is answered:

1. `Prefetcher` decides when it starts, and with early stop `Rounds` whether it is needed. A run
   without an answer is started once more, after all others of its lane.
2. `Runs` makes its requests, and has the answer compiled and judged.
3. `Completions` looks for a recording, and for an equal request in flight. It asks once more if
   the reply cannot be used.
4. `HostClient` (`retry.py`) has `Retries` send it at the host's pace, each attempt within the
   `Budget`; or `BatchClient` (`batches.py`) submits it with others as a batch.
5. The client of the host's SDK, or a plugin's, sends it once.

The final grading is the front end's. Early stop grades provisionally, to see what it can leave out.
"""

import asyncio
import threading
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from dataclasses import KW_ONLY, InitVar, dataclass
from functools import partial
from itertools import count
from typing import Generic, TypeVar

from pytest_upskill.answers.completions import Completions
from pytest_upskill.answers.early_stop import Rounds
from pytest_upskill.answers.resources import Host, Resources
from pytest_upskill.answers.run import Runs
from pytest_upskill.checks.extensions import describe_exception
from pytest_upskill.grading.grade import Answer, with_left_out
from pytest_upskill.models import Model
from pytest_upskill.models.clients import is_cancellation
from pytest_upskill.project.grouping import grouped
from pytest_upskill.project.messages import safe_line
from pytest_upskill.trials.trial import Trial

TrialKey = str
"""What identifies a trial among those of a service: for a test item, its key `PLACE::NAME`."""

RunKey = tuple[TrialKey, int]
"""The key of a trial and the index of the run."""

K = TypeVar("K")
T = TypeVar("T")


class Service:
    """Runs trials before their answers are needed, on one background loop.

    The constructor reads recordings and starts the loop's thread. A completion comes from its
    recording, from an equal request in flight, or from the model.

    Args:
        trials: By key, in the order in which their answers will be needed.
        hosts: The host of each model.
        resources: The cache, budget, prices and other resources of the session.
        lookahead: Maximum number of runs that start before a test waits for them; None for no
            limit.
    """

    def __init__(
        self,
        trials: Mapping[TrialKey, Trial],
        hosts: Mapping[Model, Host],
        resources: Resources,
        *,
        lookahead: int | None = None,
    ) -> None:
        self._trials, self._judged_together = trials, _arms_of_judged_cases(trials)
        self._runs = Runs(trials.values(), Completions(hosts, resources), resources)
        early_stop = any(trial.early_stop for trial in trials.values())
        self._rounds = Rounds(trials.values())
        batches = resources.batches.enabled
        recorded: dict[RunKey, Answer] = {}
        lanes: dict[Host, list[RunKey]] = {}
        run_keys = [(key, run) for key, trial in trials.items() for run in range(trial.runs)]
        if early_stop:
            run_keys.sort(key=lambda run_key: run_key[1])
        for key, run in run_keys:
            trial = trials[key]
            answer = None if early_stop else self._runs.recorded_answer(trial, run)
            if answer is not None:
                recorded[key, run] = answer
            else:
                lanes.setdefault(hosts[trial.model], []).append((key, run))
        self._prefetcher = Prefetcher(
            lanes.values(),
            self._answer,
            # A run of a later round waits for earlier rounds, which must have started before.
            in_order=early_stop,
            # Twice the slots: a run that waits out a rate limit, or is compiled, needs none.
            width=max(2 * resources.concurrency, len(run_keys) if batches else 0),
            # Batches take all runs at once: a part of them would only make a further batch.
            lookahead=None if batches else lookahead,
            # A run that is missing is requested again at the end, when the trouble may be over.
            is_final=lambda answer: not answer.may_come_later,
            known=recorded.items(),
            close=self._close,
        )

    def prioritize(self, key: TrialKey) -> None:
        """Move a trial to the front, as its answers are needed now."""
        for each in dict.fromkeys([key, *self._judged_together.get(key, ())]):
            for run in range(self._trials[each].runs):
                self._prefetcher.prioritize((each, run))

    def result(self, key: TrialKey) -> Future[list[Answer]]:
        """Return the future of a trial's answers, one per run; prioritize it before waiting.

        Answers that a judge decides wait for those of the case's other arms.
        """
        own = self.run_results(key)
        of_case = self._judged_together.get(key, ())
        arms = [future for arm in of_case for future in self.run_results(arm)]
        return join_futures(
            [*own, *arms], lambda answers: with_left_out(answers[: len(own)], answers[len(own) :])
        )

    def run_results(self, key: TrialKey) -> list[Future[Answer]]:
        """Return a future for each run of a trial."""
        return [self._prefetcher.futures[key, run] for run in range(self._trials[key].runs)]

    def runs_to_judge(self) -> list[Future[Answer]]:
        """Return the futures of the runs whose answers a judge decides."""
        return [future for key in self._judged_together for future in self.run_results(key)]

    def stop(self) -> None:
        """Cancel what is in flight, drop what is queued, and close the clients.

        Raises:
            Exception: A client raised it when it was closed.
        """
        self._prefetcher.stop()

    # What follows runs on the background loop.

    async def _answer(self, run_key: RunKey) -> Answer:
        key, run = run_key
        trial = self._trials[key]
        try:
            return await self._rounds.answer(trial, run, partial(self._runs.answer, trial, run))
        except Exception as error:  # noqa: BLE001  a defect of this package, and other runs go on
            defect = describe_exception(error)
            text = f"internal error of pytest-upskill, please report it: {defect}"
            return Answer(completion=None, error=safe_line(text))

    async def _close(self) -> None:
        try:
            await self._runs.aclose()
        finally:
            self._rounds.close()


def _arms_of_judged_cases(trials: Mapping[TrialKey, Trial]) -> Mapping[TrialKey, list[TrialKey]]:
    """Return the arms that decide together which statements count, for each trial with any."""
    judged = {
        key: (trial.skill.case_file, trial.skill.folder, trial.case.id, trial.model.label)
        for key, trial in trials.items()
        if trial.judge is not None and trial.case.judge_checks
    }
    of_lift = {"with_skill", "without_skill"}
    arms = grouped((case, key) for key, case in judged.items() if trials[key].arm in of_lift)
    return {key: arms.get(case, [key]) for key, case in judged.items()}


def join_futures(
    futures: Sequence[Future[T]], combine: Callable[[list[T]], list[T]] = list
) -> Future[list[T]]:
    """Return one future of all results; if any future fails or is cancelled, so does this one.

    Args:
        futures: The futures, at least one.
        combine: What makes the result of their results, in their order.
    """
    joined: Future[list[T]] = Future()
    done = count(1)

    def note_done(_: Future[T]) -> None:
        if next(done) < len(futures):
            return
        try:
            joined.set_result(combine([future.result() for future in futures]))
        except CancelledError:
            joined.cancel()
        except BaseException as error:  # noqa: BLE001  raised where the result is read
            joined.set_exception(error)

    for future in futures:
        future.add_done_callback(note_done)
    return joined


@dataclass(eq=False)
class Prefetcher(Generic[K, T]):
    """Values that are fetched on a daemon thread, in the order in which they will be needed.

    Each lane of keys (a host, say) starts its keys in order, on its own, so that a slow lane never
    delays another. A key that is needed out of order moves to the front of its lane.
    """

    lanes: InitVar[Iterable[Iterable[K]]]
    """Keys of each lane, in the order in which they will be waited for."""
    fetch: Callable[[K], Awaitable[T]]
    """Gets the value of a key; its exceptions are raised where the key is waited for."""
    _: KW_ONLY
    width: int
    """Maximum number of fetches at a time in one lane."""
    in_order: bool = False
    """Whether a key keeps its position, even if it is waited for."""
    lookahead: int | None = None
    """Maximum number of keys that start without being waited for, so that stopping early wastes no
    more than that; None for no limit."""
    is_final: Callable[[T], bool] = lambda _: True
    """Returns whether a value stands; if not, its key is fetched once more, after all others of the
    lane. Not used with ``in_order`` or ``lookahead``: others may wait for the value."""
    known: InitVar[Iterable[tuple[K, T]]] = ()
    """Further keys with their values, which need no fetch."""
    close: Callable[[], Awaitable[None]] | None = None
    """Releases what ``fetch`` opened on the loop; its exceptions are raised by ``stop``."""

    def __post_init__(self, lanes: Iterable[Iterable[K]], known: Iterable[tuple[K, T]]) -> None:
        self._queues = [OrderedDict.fromkeys(lane) for lane in lanes]
        self._queue_of = {key: queue for queue in self._queues for key in queue}
        self.futures: dict[K, Future[T]] = {key: Future() for key in self._queue_of}
        """The future of each key; prioritize a key before waiting for its future."""
        for key, value in known:
            self.futures[key] = Future()
            self.futures[key].set_result(value)
        self._fetched_again: set[K] = set()
        self._close_error: Exception | None = None
        self._prioritized: set[K] = set()
        self._started = 0
        self._loop = asyncio.new_event_loop()
        self._priorities_changed = asyncio.Event()
        self._stopped = asyncio.Event()
        # Daemon: a hung connection must never keep pytest from exiting.
        self._thread = threading.Thread(target=self._run, name="upskill-fetch", daemon=True)
        self._thread.start()

    def prioritize(self, key: K) -> None:
        """Move a key to the front, as it is needed now."""
        # Waking the loop takes time, so it is not done for a key that has started, unless this
        # lets another key start.
        queue = self._queue_of.get(key)
        if queue is not None and (self.lookahead is not None or key in queue):
            self._call_on_loop(self._prioritize, key)

    def stop(self, timeout: float = 2.0) -> None:
        """Cancel running fetches, drop queued keys, and close; wait at most ``timeout`` seconds."""
        self._call_on_loop(self._stopped.set)
        self._thread.join(timeout)
        if self._close_error is not None:
            raise self._close_error

    def _call_on_loop(self, function: Callable[..., object], *args: object) -> None:
        with suppress(RuntimeError):  # the loop is closed: every future is settled
            self._loop.call_soon_threadsafe(function, *args)

    # What follows runs on the background thread.

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(self._run_workers())
        except Exception as error:  # noqa: BLE001  of what is closed; raised by stop()
            self._close_error = error
        finally:
            for future in self.futures.values():
                future.cancel()
            self._loop.close()

    async def _run_workers(self) -> None:
        workers = [
            asyncio.create_task(self._fetch_queue(queue))
            for queue in self._queues
            for _ in range(min(self.width, len(queue)))
        ]
        try:
            await self._stopped.wait()
        finally:
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)
            if self.close is not None:
                await self.close()

    async def _fetch_queue(self, queue: OrderedDict[K, None]) -> None:
        while queue:
            key = next(iter(queue))
            if not self._may_start(key):
                self._priorities_changed.clear()
                await self._priorities_changed.wait()
                continue
            del queue[key]
            self._started += 1
            future = self.futures[key]
            try:
                value = await self.fetch(key)
            except BaseException as error:
                if is_cancellation(error):
                    raise
                future.set_exception(error)  # raised where the key is waited for
            else:
                waits = self.in_order or self.lookahead is not None
                if waits or key in self._fetched_again or self.is_final(value):
                    future.set_result(value)
                else:
                    self._fetched_again.add(key)
                    queue[key] = None  # at its end

    def _may_start(self, key: K) -> bool:
        if self.lookahead is None or key in self._prioritized:
            return True
        return self._started < len(self._prioritized) + self.lookahead

    def _prioritize(self, key: K) -> None:
        self._prioritized.add(key)
        queue = self._queue_of[key]
        if key in queue and not self.in_order and key not in self._fetched_again:
            queue.move_to_end(key, last=False)
        self._priorities_changed.set()
