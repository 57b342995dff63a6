"""The completion of a request: from a recording, from a request in flight, or from the model."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from types import MappingProxyType
from urllib.parse import urlsplit

from pytest_upskill.checks.extensions import raised
from pytest_upskill.completion import Client, Completion, ProviderError, Request
from pytest_upskill.completions.daemon_thread import in_daemon_thread
from pytest_upskill.completions.identity import identity
from pytest_upskill.completions.prompt_cache import PromptCacheWarmup
from pytest_upskill.completions.resources import AgentRunner, Host, Resources
from pytest_upskill.grading.grade import Answer
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


@dataclass(frozen=True, slots=True, kw_only=True)
class CompletionRequest:
    """A request, the host it goes to, and what it is for."""

    request: Request
    host: Host
    subject: str
    """Whose answer it is, in the words of the node id."""
    bill: list[Completion]
    """Where to note what was paid for."""
    usable: Callable[[Completion], bool] = lambda _: True
    """Whether an answer is worth recording."""


class CompletionSource:
    """Sends each request once and keeps the open clients; used on one event loop.

    Args:
        resources: Where answers are recorded, and what asking takes.
        concurrency: Requests in flight at one host.
        recording: The command that records what a replay lacks.
    """

    def __init__(self, resources: Resources, *, concurrency: int, recording: str) -> None:
        self._cache = resources.cache
        self._resources = resources
        self._concurrency = concurrency
        self._recording = recording
        self._clients: dict[Host, asyncio.Task[Client]] = {}
        self._asked: dict[str, asyncio.Task[Answer]] = {}
        self._answers: dict[str, Answer] = {}
        self._warmup = PromptCacheWarmup()
        self._agents: AgentRunner | None = None

    async def answer(self, wanted: CompletionRequest) -> Answer:
        """Return the answer, the same one for everybody who makes the same request."""
        if not wanted.host.recorded or self._cache.mode == "off":
            return await self._pay(wanted)
        # Two labels of one model, or two skills without their blocks, ask the same.
        same = identity(wanted.request, wanted.host.url)
        if same in self._answers:
            return _paid_already(self._answers[same])
        first = same not in self._asked
        if first:
            completion = self._cache.load(wanted.request, wanted.host.url)
            if completion is not None:
                return Answer(completion=completion)
            if self._cache.mode == "replay":
                return Answer(completion=None, error=self._unrecorded(wanted))
            self._asked[same] = asyncio.create_task(self._pay(wanted))
        answer = self._answers[same] = await self._asked[same]
        # A task takes ten times the memory of what it leaves.
        self._asked.pop(same, None)
        return answer if first else _paid_already(answer)

    async def aclose(self) -> None:
        """Close the connections.

        Raises:
            ExceptionGroup: What clients raised that would not close.
        """
        if self._agents is not None:
            self._agents.close()
        errors = []
        for task in self._clients.values():
            if task.done() and not task.cancelled():
                try:
                    await task.result().aclose()
                except Exception as error:  # noqa: BLE001  the others are to be closed too
                    errors.append(error)
        if errors:
            raise ExceptionGroup("clients failed to close", errors)

    async def _pay(self, wanted: CompletionRequest) -> Answer:
        """Send the request to the model, within the budget, and record a usable answer.

        An answer that is not usable is asked for once more.
        """
        try:
            completion = await self._billed(wanted)
            if not wanted.usable(completion):
                completion = await self._billed(wanted)
        except (BudgetError, ProviderError) as error:
            if error.paid is not None:
                wanted.bill.append(error.paid)
            if isinstance(error, BudgetError):
                return Answer(completion=None, not_sent=str(error))
            return Answer(completion=None, error=str(error))
        run = completion.agent_run
        # What an agent did without its skill tells nothing, and the next run may be sound.
        whole = run is None or not run.broken
        if wanted.host.recorded and wanted.usable(completion) and whole:
            self._cache.store(wanted.request, wanted.host.url, completion, wanted.subject)
        return Answer(completion=completion)

    async def _billed(self, wanted: CompletionRequest) -> Completion:
        completion = without_reasoning(await self._ask(wanted.request, wanted.host))
        if wanted.request.model.provider != "offline":
            wanted.bill.append(completion)
        return completion

    async def _ask(self, asked: Request, host: Host) -> Completion:
        client = await self._client(host)
        if asked.task is not None and not host.runs_agents:
            if self._agents is None:
                self._agents = self._resources.agents()
            return await self._agents.complete(asked, client)
        if not host.caches_prompts:
            return await client.complete(asked)
        async with self._warmup.turn(asked):
            return await client.complete(asked)

    def _unrecorded(self, wanted: CompletionRequest) -> str:
        """Return what a replay lacks and how to record it."""
        # Without the subject, which is the test's: so pytest reports one cause once.
        found = self._cache.changes(wanted.subject, wanted.request, wanted.host.url)
        # Where a model chooses among skills, their catalogue stands in place of one skill.
        said = dict(_CHANGED, skill="the catalogue") if wanted.request.tools else _CHANGED
        changed = ", ".join(said.get(what, what) for what in found)
        problem = f"stale recording ({changed} changed since)" if changed else "no recording"
        return f"{problem} in {self._cache.folder}: record it: {self._recording}"

    async def _client(self, host: Host) -> Client:
        task = self._clients.get(host)
        if task is None:
            task = self._clients[host] = asyncio.create_task(self._open_once(host))
        return await task

    async def _open_once(self, host: Host) -> Client:
        try:
            return await self._open(host)
        except ProviderError as error:
            return Unopened(str(error))
        except Exception as error:  # noqa: BLE001  an SDK's, or of a library too old for it
            return Unopened(f"cannot create a client for {host.name}: {raised(error)}")

    async def _open(self, host: Host) -> Client:
        # Only here: a run that asks no model needs neither SDK nor retries.
        from pytest_upskill.spending.host_client import HostClient
        from pytest_upskill.spending.retry import retries_to

        client, shared = await in_daemon_thread(host.open), self._resources
        if host.runs_agents:
            return client
        retries = retries_to(
            urlsplit(host.url).netloc or host.name,
            most=self._concurrency,
            custom=host.custom,
            timeout=host.timeout,
            activity=shared.activity,
        )
        return HostClient(client, retries, shared.budget, shared.activity)


class Unopened:
    """The client of a host that has none: every request fails with the same line.

    Each with an exception of its own: every ``raise`` lengthens an exception's traceback, so that
    the printed tracebacks of a shared one grow with the square of the requests.

    Args:
        message: Why there is no client.
    """

    def __init__(self, message: str) -> None:
        self._message = message

    async def complete(self, request: Request) -> Completion:
        """Send nothing.

        Raises:
            ProviderError: Always.
        """
        del request
        raise ProviderError(self._message, fatal=True, billable=False)

    async def aclose(self) -> None:
        """Close nothing."""


def _paid_already(answer: Answer) -> Answer:
    """Return the answer for another run, where it costs nothing more."""
    if answer.completion is None:
        return answer
    return replace(answer, completion=replace(answer.completion, replayed=True))
