"""Produce the answers of trials, for every front end; it does not depend on pytest.

How a run is answered:

1. `Prefetcher` decides when it starts, and with early stop `Rounds` whether it is needed.
2. `Runs` makes its requests, and has the answer compiled and judged.
3. `Completions` looks for a recording, and for an equal request in flight.
4. `HostClient` has `Retries` send it at the host's pace, each attempt within the `Budget`; or
   `BatchClient` submits it with others as a batch.
5. The client of the host's SDK, or a plugin's, sends it once.

The final grading is the front end's. Early stop grades provisionally, to see what it can leave out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import CancelledError, Future
from functools import partial
from itertools import count
from typing import TypeVar

from pytest_upskill.answers.completions import Completions
from pytest_upskill.answers.early_stop import Rounds
from pytest_upskill.answers.prefetch import Prefetcher
from pytest_upskill.answers.resources import Host, Resources
from pytest_upskill.answers.run import Runs
from pytest_upskill.checks.extensions import describe_exception
from pytest_upskill.grading.grade import Answer, with_left_out
from pytest_upskill.models import Model
from pytest_upskill.project.messages import safe_line
from pytest_upskill.trials.trial import Trial

TrialKey = str
"""What identifies a trial among those of a service: for a test item, its key `PLACE::NAME`."""

RunKey = tuple[TrialKey, int]
"""The key of a trial and the index of the run."""

T = TypeVar("T")


class Service:
    """Runs trials before their answers are needed, on one background loop.

    The constructor reads recordings and starts the loop's thread. A completion comes from its
    recording, from an equal request in flight, or from the model.

    Args:
        trials: By key, in the order in which their answers will be needed.
        hosts: The host of each model.
        resources: The cache, budget, prices and other resources of the session.
        concurrency: Requests in flight at one host.
        lookahead: Maximum number of runs that start before a test waits for them; None for no
            limit.
        judge: Judge of the statements about answers; None for no judge.
        record_command: The command that records what a replay lacks.
        early_stop: Whether a cell ends once its verdict is clear.
    """

    def __init__(
        self,
        trials: Mapping[TrialKey, Trial],
        hosts: Mapping[Model, Host],
        resources: Resources,
        *,
        concurrency: int,
        lookahead: int | None = None,
        judge: Model | None = None,
        record_command: str = "",
        early_stop: bool = False,
    ) -> None:
        self._trials = trials
        source = Completions(
            hosts, resources, concurrency=concurrency, record_command=record_command
        )
        self._runs = Runs(trials.values(), source, resources, judge=judge)
        self._rounds = Rounds(trials.values()) if early_stop else None
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
            width=max(2 * concurrency, len(run_keys) if batches else 0),
            # A batch that is not complete would only be a further one.
            lookahead=None if batches else lookahead,
            # A run that is missing is requested again at the end, when the trouble may be over.
            is_final=lambda answer: not answer.may_come_later,
            known=recorded,
            close=self._close,
        )
        self._arms = _arms_of_judged_cases(trials) if judge else {}

    def prioritize(self, key: TrialKey) -> None:
        """Move a trial to the front, as its answers are needed now."""
        for each in dict.fromkeys([key, *self._arms.get(key, ())]):
            for run in range(self._trials[each].runs):
                self._prefetcher.prioritize((each, run))

    def result(self, key: TrialKey) -> Future[list[Answer]]:
        """Return the future of a trial's answers, one per run; prioritize it before waiting.

        Answers that a judge decides wait for those of the case's other arms.
        """
        own = self.run_results(key)
        arms = [future for arm in self._arms.get(key, ()) for future in self.run_results(arm)]
        return join_futures(
            [*own, *arms], lambda answers: with_left_out(answers[: len(own)], answers[len(own) :])
        )

    def run_results(self, key: TrialKey) -> list[Future[Answer]]:
        """Return a future for each run of a trial."""
        return [self._prefetcher.future((key, run)) for run in range(self._trials[key].runs)]

    def runs_to_judge(self) -> list[Future[Answer]]:
        """Return the futures of the runs whose answers a judge decides."""
        return [future for key in self._arms for future in self.run_results(key)]

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
            if self._rounds is None:
                return await self._runs.answer(trial, run)
            return await self._rounds.answer(trial, run, partial(self._runs.answer, trial, run))
        except Exception as error:  # noqa: BLE001  a defect of this package, and other runs go on
            defect = describe_exception(error)
            text = f"internal error of pytest-upskill, please report it: {defect}"
            return Answer(completion=None, error=safe_line(text))

    async def _close(self) -> None:
        try:
            await self._runs.aclose()
        finally:
            if self._rounds is not None:
                self._rounds.close()


def _arms_of_judged_cases(trials: Mapping[TrialKey, Trial]) -> Mapping[TrialKey, list[TrialKey]]:
    """Return the arms that decide together which statements count, for each trial with any."""
    judged = {
        key: (trial.skill.case_file, trial.skill.folder, trial.case.id, trial.model.label)
        for key, trial in trials.items()
        if trial.case.judge_checks
    }
    arms: dict[tuple[object, ...], list[TrialKey]] = {}
    for key, case in judged.items():
        if trials[key].arm in {"with_skill", "without_skill"}:
            arms.setdefault(case, []).append(key)
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
