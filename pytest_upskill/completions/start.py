"""From trials to answers, in the order in which their items will wait for them."""

from __future__ import annotations

import os
import traceback
from collections.abc import Iterator, Mapping
from functools import partial

from pytest_upskill.completions.early_stop import Clear, Rounds
from pytest_upskill.completions.prefetch import Prefetcher
from pytest_upskill.completions.service import CompletionSource, Host, Resources
from pytest_upskill.completions.trial_runner import Key, TrialRunner
from pytest_upskill.grading.grade import Answer
from pytest_upskill.model import Model
from pytest_upskill.trial import Trial


def fetch_answers(
    trials: Mapping[str, Trial],
    *,
    hosts: Mapping[Model, Host],
    resources: Resources,
    concurrency: int,
    lookahead: int | None,
    recording: str,
    judge: Model | None,
    clear: Clear | None = None,
) -> Prefetcher[Key, Answer]:
    """Start fetching every run of the trials, in their order.

    Args:
        trials: By node id, in the order in which their items will run.
        hosts: Where each model is served.
        resources: What else it takes.
        concurrency: Requests in flight at one host.
        lookahead: Runs that may start beyond those waited for; None for no limit.
        recording: The command that records what a replay lacks.
        judge: Who decides statements about answers; None for nobody.
        clear: When a cell needs no further round; None to fetch every run, a trial at a time.
    """
    source = CompletionSource(resources, concurrency=concurrency, recording=recording)
    runner = TrialRunner(trials, hosts, resources, source, judge=judge)
    rounds = Rounds(trials.values(), clear) if clear is not None else None
    known: dict[Key, Answer] = {}
    lanes: dict[Host, list[Key]] = {}
    for key in _in_turn(trials, by_round=rounds is not None):
        if rounds is None and (answer := runner.recorded(key)):
            known[key] = answer
        else:
            lanes.setdefault(hosts[trials[key[0]].model], []).append(key)

    async def fetch(key: Key) -> Answer:
        nodeid, run = key
        try:
            if rounds is None:
                return await runner.answer(key)
            return await rounds.play(trials[nodeid], run, partial(runner.answer, key))
        except Exception as error:  # noqa: BLE001  a mistake of ours, perhaps the same for all runs
            return Answer(completion=None, error=_unexpected(error))

    async def close() -> None:
        try:
            await runner.aclose()
        finally:
            if rounds is not None:
                rounds.close()

    return Prefetcher(
        lanes.values(),
        fetch,
        # A round waits for the one before it, which must therefore be under way.
        in_order=rounds is not None,
        # Twice the slots: one sleeping out a rate limit, or compiling, leaves its slot to another.
        width=2 * concurrency,
        lookahead=lookahead,
        known=known,
        close=close,
    )


def _unexpected(error: Exception) -> str:
    """Describe in one line an error that this package should not have raised."""
    said = "".join(c if c.isprintable() else " " for c in f"{type(error).__name__}: {error}")
    where = traceback.extract_tb(error.__traceback__)[-1]
    place = f"{os.path.relpath(where.filename)}:{where.lineno}"
    return f"pytest-upskill failed, please report it: {' '.join(said.split())} ({place})"


def _in_turn(trials: Mapping[str, Trial], *, by_round: bool) -> Iterator[Key]:
    """Order the runs: those of a trial together, or a round of all trials together."""
    keys = ((nodeid, run) for nodeid, trial in trials.items() for run in range(trial.runs))
    yield from sorted(keys, key=lambda key: key[1]) if by_round else keys
