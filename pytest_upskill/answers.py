"""From trials to answers: recorded or asked for, with what compilers say of the code in them."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from pytest_upskill.cache import Cache
from pytest_upskill.checks import Compile
from pytest_upskill.compile import CannotCompile, Compilers
from pytest_upskill.completion import Completion, ProviderError, Request
from pytest_upskill.fetch import Fetcher
from pytest_upskill.grade import Answer
from pytest_upskill.models import Model
from pytest_upskill.plan import Trial, request
from pytest_upskill.prices import Budget, Prices
from pytest_upskill.providers import Client
from pytest_upskill.retry import RetryingClient, Slots

Key = tuple[str, int]
"""Node id of a trial and index of the run."""


@dataclass(frozen=True, slots=True)
class Host:
    """An endpoint; the models behind it share its connections and its limit."""

    name: str
    open: Callable[[], Client]
    """Make the client. Slow, as it imports the provider's SDK: called once, off the loop."""
    recorded: bool
    """Whether its answers are kept: no model's own are not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    """What answering uses beside the models, one of each in a session."""

    cache: Cache
    compilers: Compilers
    prices: Prices
    budget: Budget


def fetch_answers(
    trials: Mapping[str, Trial],
    *,
    hosts: Mapping[Model, Host],
    resources: Resources,
    concurrency: int,
    lookahead: int | None,
) -> Fetcher[Key, Answer]:
    """Start fetching every run of the trials, in their order.

    Args:
        trials: By node id, in the order in which their items will run.
        hosts: Where each model is served.
        resources: What else it takes.
        concurrency: Requests in flight at one host.
        lookahead: Runs that may start beyond those waited for; None for no limit.
    """
    asker = _Asker(trials, hosts, resources, concurrency)
    lanes: dict[Host, list[Key]] = {}
    for nodeid, trial in trials.items():
        lanes.setdefault(hosts[trial.model], []).extend((nodeid, run) for run in range(trial.runs))
    return Fetcher(
        lanes.values(),
        asker.answer,
        # Twice the slots: one sleeping out a rate limit, or compiling, leaves its slot to another.
        width=2 * concurrency,
        lookahead=lookahead,
        close=asker.aclose,
    )


class _Asker:
    """Holds the open clients and the compilers' threads; lives on the fetcher's loop."""

    def __init__(
        self,
        trials: Mapping[str, Trial],
        hosts: Mapping[Model, Host],
        resources: Resources,
        concurrency: int,
    ) -> None:
        self._trials = trials
        self._hosts = hosts
        self._cache = resources.cache
        self._compilers = resources.compilers
        self._prices = resources.prices
        self._budget = resources.budget
        self._concurrency = concurrency
        self._clients: dict[Host, asyncio.Task[Client]] = {}
        self._threads = ThreadPoolExecutor(
            len(os.sched_getaffinity(0)), thread_name_prefix="upskill-compile"
        )

    async def answer(self, key: Key) -> Answer:
        """Get one run's answer; what keeps it from coming is told, not raised."""
        nodeid, run = key
        trial = self._trials[nodeid]
        asked = request(trial, run)
        host = self._hosts[trial.model]
        completion = self._cache.load(asked) if host.recorded else None
        if completion is not None:
            return await self._compile(trial, completion)
        if host.recorded and self._cache.mode == "replay":
            return Answer(completion=None, error=self._no_recording(trial, run))
        return await self._pay(trial, asked, host)

    async def aclose(self) -> None:
        """Kill running compilers and close the connections."""
        self._compilers.close()
        self._threads.shutdown(wait=False, cancel_futures=True)
        for task in self._clients.values():
            if task.done() and not task.cancelled() and task.exception() is None:
                await task.result().aclose()

    async def _pay(self, trial: Trial, asked: Request, host: Host) -> Answer:
        """Ask the model, within the budget, and keep what it answers."""
        most = self._prices.most(asked) if self._budget.limit is not None else None
        if not self._budget.reserve(most):
            reason = f"--upskill-max-cost: ${self._budget.limit:g} could be passed by asking this"
            return Answer(completion=None, unasked=reason)
        try:
            client = await self._client(host)
            completion = await client.complete(asked)
        except ProviderError as error:
            self._budget.settle(most, 0.0)
            return Answer(completion=None, error=str(error))
        completion = replace(completion, cost_usd=self._prices.cost(trial.model, completion))
        self._budget.settle(most, completion.cost_usd)
        if host.recorded:
            self._cache.store(asked, completion, _subject(trial, asked.run))
        return await self._compile(trial, completion)

    def _no_recording(self, trial: Trial, run: int) -> str:
        subject = _subject(trial, run)
        problem = "no recording of"
        if self._cache.has_stale(subject):
            problem = "the skill or the case has changed since the recording of"
        return (
            f"{problem} {subject}: record it with pytest --upskill-models {trial.model.label} "
            f"--upskill-cache auto --upskill-cache-dir {self._cache.folder} "
            f"{trial.skill.case_file.parent}"
        )

    async def _client(self, host: Host) -> Client:
        task = self._clients.get(host)
        if task is None:
            task = self._clients[host] = asyncio.create_task(self._open(host))
        # Shielded: a run that is cancelled must not take the client away from the others.
        return await asyncio.shield(task)

    async def _open(self, host: Host) -> Client:
        client = await asyncio.to_thread(host.open)
        return RetryingClient(client, slots=Slots(self._concurrency))

    async def _compile(self, trial: Trial, completion: Completion) -> Answer:
        """Let compilers, beside further requests, look at the code in the answer."""
        loop = asyncio.get_running_loop()
        builds = [
            loop.run_in_executor(self._threads, self._compilers.build, check, completion.text)
            for check in trial.case.checks
            if isinstance(check, Compile)
        ]
        try:
            return Answer(completion=completion, compiled=tuple(await asyncio.gather(*builds)))
        except CannotCompile as error:
            return Answer(completion=completion, error=str(error))


def _subject(trial: Trial, run: int) -> str:
    """Name a run as a reader of the case file would."""
    return f"{trial.skill.name}::{trial.name} run {run + 1}"
