"""From trials to answers: ask the model, then have compilers look at the code in its answer."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from pytest_upskill.checks import Compile
from pytest_upskill.compile import CannotCompile, Compilers
from pytest_upskill.completion import Completion, ProviderError
from pytest_upskill.fetch import Fetcher
from pytest_upskill.grade import Answer
from pytest_upskill.models import Model
from pytest_upskill.plan import Trial, request
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


def fetch_answers(
    trials: Mapping[str, Trial],
    *,
    hosts: Mapping[Model, Host],
    compilers: Compilers,
    concurrency: int,
    lookahead: int | None,
) -> Fetcher[Key, Answer]:
    """Start fetching every run of the trials, in their order.

    Args:
        trials: By node id, in the order in which their items will run.
        hosts: Where each model is served.
        compilers: What decides compile checks.
        concurrency: Requests in flight at one host.
        lookahead: Runs that may start beyond those waited for; None for no limit.
    """
    asker = _Asker(trials, hosts, compilers, concurrency)
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
        compilers: Compilers,
        concurrency: int,
    ) -> None:
        self._trials = trials
        self._hosts = hosts
        self._compilers = compilers
        self._concurrency = concurrency
        self._clients: dict[Host, asyncio.Task[Client]] = {}
        self._threads = ThreadPoolExecutor(
            len(os.sched_getaffinity(0)), thread_name_prefix="upskill-compile"
        )

    async def answer(self, key: Key) -> Answer:
        """Get one run's answer; trouble of the provider or the compiler is told, not raised."""
        nodeid, run = key
        trial = self._trials[nodeid]
        client = await self._client(self._hosts[trial.model])
        try:
            completion = await client.complete(request(trial, run))
        except ProviderError as error:
            return Answer(completion=None, error=str(error))
        return await self._compile(trial, completion)

    async def aclose(self) -> None:
        """Kill running compilers and close the connections."""
        self._compilers.close()
        self._threads.shutdown(wait=False, cancel_futures=True)
        for task in self._clients.values():
            if task.done() and not task.cancelled() and task.exception() is None:
                await task.result().aclose()

    async def _client(self, host: Host) -> Client:
        task = self._clients.get(host)
        if task is None:
            task = self._clients[host] = asyncio.create_task(self._open(host))
        return await asyncio.shield(task)

    async def _open(self, host: Host) -> Client:
        client = await asyncio.to_thread(host.open)
        return RetryingClient(client, slots=Slots(self._concurrency))

    async def _compile(self, trial: Trial, completion: Completion) -> Answer:
        loop = asyncio.get_running_loop()
        checks = [check for check in trial.case.checks if isinstance(check, Compile)]
        builds = [
            loop.run_in_executor(self._threads, self._compilers.build, check, completion.text)
            for check in checks
        ]
        try:
            return Answer(completion=completion, compiled=tuple(await asyncio.gather(*builds)))
        except CannotCompile as error:
            return Answer(completion=completion, error=str(error))
