"""The completion of a request: from a recording, from a request in flight, or from the model."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from urllib.parse import urlsplit

from pytest_upskill.answers.daemon_thread import in_daemon_thread
from pytest_upskill.answers.identity import identity
from pytest_upskill.answers.prompt_cache import PromptCacheWarmup
from pytest_upskill.answers.resources import AgentRunner, Host, Resources
from pytest_upskill.checks.extensions import describe_exception
from pytest_upskill.completion import Client, Completion, ProviderError, Request
from pytest_upskill.grading.grade import Answer
from pytest_upskill.model import Model
from pytest_upskill.spending.budget import BudgetError
from pytest_upskill.wire.reasoning import without_reasoning

_CHANGED = MappingProxyType(
    {
        "model": "the model",
        "url": "its address",
        "frame": "this plugin",
        "draw": "the cases with the same input",
        "skill": "SKILL.md",
        "user": "the case",
        "max_tokens": "--upskill-max-tokens",
        "parameters": "--upskill-param",
        "tools": "the tools",
        "turns": "the conversation before",
        "catalogue": "the catalogue",
        "workspace": "the workspace",
        "max_turns": "max_turns",
        "caps": "the limits of a run",
    }
)


class CompletionSource:
    """Finds or requests completions and keeps the open clients; used on one event loop.

    Equal requests share one answer, unless their answers are not recorded: then each is sent. An
    unusable answer is requested once more.

    Args:
        hosts: The host of each model.
        resources: The recordings, and what requests need: the budget, the bill, and so on.
        concurrency: Requests in flight at one host.
        record_command: The command that records what a replay lacks.
    """

    def __init__(
        self,
        hosts: Mapping[Model, Host],
        resources: Resources,
        *,
        concurrency: int,
        record_command: str,
    ) -> None:
        self.hosts = hosts
        self._cache = resources.cache
        self._resources = resources
        self._concurrency = concurrency
        self._record_command = record_command
        self._clients: dict[Host, asyncio.Task[Client | str]] = {}
        self._in_flight: dict[str, asyncio.Task[Answer]] = {}
        self._answers: dict[str, Answer] = {}
        self._warmup = PromptCacheWarmup()
        self._agents: AgentRunner | None = None

    def recorded(self, request: Request) -> Completion | None:
        """Read the recorded answer to a request."""
        host = self.hosts[request.model]
        return self._cache.load(request, host.url) if host.records_answers else None

    async def answer(
        self,
        request: Request,
        subject: str,
        *,
        usable: Callable[[Completion], bool] = lambda _: True,
        judging: bool = False,
    ) -> Answer:
        """Return the answer, the same one for everybody who makes the same request.

        An error is part of the answer, not raised.

        Args:
            request: The request.
            subject: Whose answer it is, in the words of the node id.
            usable: Tells whether an answer is worth recording; if not, it is requested once more.
            judging: Whether the request is a judge's; those are billed separately.
        """
        host = self.hosts[request.model]
        bill = self._resources.bill.judgements if judging else self._resources.bill.answers
        pay = partial(self._request_answer, request, subject, usable, bill)
        if not host.records_answers or self._cache.mode == "off":
            return await pay()
        # Two labels of one model, or two skills without their blocks, make the same request.
        request_id = identity(request, host.url)
        if request_id in self._answers:
            return _paid_already(self._answers[request_id])
        is_first = request_id not in self._in_flight
        if is_first:
            if completion := self.recorded(request):
                return Answer(completion=completion)
            if self._cache.mode == "replay":
                return Answer(completion=None, error=self._no_recording_error(request, subject))
            self._in_flight[request_id] = asyncio.create_task(pay())
        answer = self._answers[request_id] = await self._in_flight[request_id]
        # A task takes ten times the memory of what it leaves.
        self._in_flight.pop(request_id, None)
        return answer if is_first else _paid_already(answer)

    async def aclose(self) -> None:
        """Close the connections.

        Raises:
            ExceptionGroup: What clients raised that would not close.
        """
        if self._agents is not None:
            self._agents.close()
        errors = []
        for task in self._clients.values():
            client = task.result() if task.done() and not task.cancelled() else ""
            if not isinstance(client, str):
                try:
                    await client.aclose()
                except Exception as error:  # noqa: BLE001  the others are to be closed too
                    errors.append(error)
        if errors:
            raise ExceptionGroup("clients failed to close", errors)

    async def _request_answer(
        self,
        request: Request,
        subject: str,
        usable: Callable[[Completion], bool],
        bill: list[Completion],
    ) -> Answer:
        """Send a request to the model, within the budget, and record a usable answer."""
        try:
            completion = await self._complete_and_bill(request, bill)
            if not usable(completion):
                completion = await self._complete_and_bill(request, bill)
        except (BudgetError, ProviderError) as error:
            if error.paid is not None:
                bill.append(error.paid)
            if isinstance(error, BudgetError):
                return Answer(completion=None, why_not_sent=str(error))
            return Answer(completion=None, error=str(error))
        host, run = self.hosts[request.model], completion.agent_run
        # What an agent did without its skill tells nothing, and the next run may be sound.
        sound = run is None or not run.broken
        if host.records_answers and usable(completion) and sound:
            self._cache.store(request, host.url, completion, subject)
        return Answer(completion=completion)

    async def _complete_and_bill(self, request: Request, bill: list[Completion]) -> Completion:
        completion = without_reasoning(await self._complete(request))
        if request.model.provider != "offline":
            bill.append(completion)
        return completion

    async def _complete(self, request: Request) -> Completion:
        host = self.hosts[request.model]
        client = await self._client(host)
        if request.task is not None and not host.runs_agents:
            if self._agents is None:
                self._agents = self._resources.agents()
            return await self._agents.complete(request, client)
        if not host.caches_prompts:
            return await client.complete(request)
        async with self._warmup.turn(request):
            return await client.complete(request)

    def _no_recording_error(self, request: Request, subject: str) -> str:
        """Return what a replay lacks and how to record it."""
        # Without the subject, which is the test's: so pytest reports one cause once.
        changed_parts = self._cache.changes(subject, request, self.hosts[request.model].url)
        # Where a model chooses among skills, their catalogue stands in place of one skill.
        descriptions = dict(_CHANGED, skill="the catalogue") if request.tools else _CHANGED
        changed = ", ".join(descriptions.get(part, part) for part in changed_parts)
        problem = f"stale recording ({changed} changed since)" if changed else "no recording"
        return f"{problem} in {self._cache.folder}: record it: {self._record_command}"

    async def _client(self, host: Host) -> Client:
        """Return the client of a host, which is opened once.

        Raises:
            ProviderError: It cannot be opened.
        """
        if host not in self._clients:
            self._clients[host] = asyncio.create_task(self._open(host))
        client = await self._clients[host]
        if isinstance(client, str):
            # Each time a new one: every ``raise`` lengthens an exception's traceback, so that the
            # printed tracebacks of a shared one grow with the square of the requests.
            raise ProviderError(client, fatal=True, billable=False)
        return client

    async def _open(self, host: Host) -> Client | str:
        """Return the client of a host, or why there is none."""
        # Only here: a run that asks no model needs neither SDK nor retries.
        from pytest_upskill.spending.host_client import HostClient
        from pytest_upskill.spending.retry import retries_to

        shared = self._resources
        try:
            client = await in_daemon_thread(host.open)
            if host.runs_agents:
                return client
            retries = retries_to(
                urlsplit(host.url).netloc or host.name,
                concurrency=self._concurrency,
                custom=host.custom,
                timeout=host.timeout,
                activity=shared.activity,
            )
            return HostClient(client, retries, shared.budget)
        except ProviderError as error:
            return str(error)
        except Exception as error:  # noqa: BLE001  an SDK's, or of a library too old for it
            return f"cannot create a client for {host.name}: {describe_exception(error)}"


def _paid_already(answer: Answer) -> Answer:
    """Return the answer for another run, where it costs nothing more."""
    if answer.completion is None:
        return answer
    return replace(answer, completion=replace(answer.completion, replayed=True))
