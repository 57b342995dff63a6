"""The answer to a request: from a recording, from an equal request in flight, or from the model."""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from functools import partial
from typing import cast
from urllib.parse import urlsplit

from pytest_upskill.answers.batches import BatchClient, is_batchable
from pytest_upskill.answers.budget import BudgetError
from pytest_upskill.answers.recordings import identity
from pytest_upskill.answers.resources import Host, Resources
from pytest_upskill.answers.retry import HostClient, Pace, Retries
from pytest_upskill.checks.extensions import describe_exception
from pytest_upskill.grading.grade import Answer
from pytest_upskill.models import Client, Completion, Model, ProviderError, Request
from pytest_upskill.models.completion import Look
from pytest_upskill.models.request import BatchApi
from pytest_upskill.trials.trial import Trial, request_of

_MIN_CACHED = 3 * 512
"""Bytes of the shortest prompt that a model of Anthropic caches, at fewer in a token than usual.

Waiting in vain takes the time of one answer, but not waiting costs money.
"""


@dataclass(eq=False)
class Completions:
    """Loads recorded completions, and requests others from clients, which it opens and closes.

    Equal requests share one answer, unless their answers are not recorded: then each is sent. An
    unusable answer is requested once more. Used on one event loop.
    """

    hosts: Mapping[Model, Host]
    """The host of each model."""
    resources: Resources
    """The recordings, the budget, the bill and the agents of the session."""

    def __post_init__(self) -> None:
        self._cache = self.resources.cache
        self._clients: dict[Host, asyncio.Task[Client]] = {}
        self._requested: dict[str, asyncio.Task[Answer]] = {}
        self._warmed: dict[tuple[str, str], asyncio.Event] = {}
        """For each model and skill block, whether the first request with them has ended."""
        self._agents: dict[Host, Client] = {}
        """The built-in agent with the models of each host."""
        self._opened = AsyncExitStack()
        """Closes all clients."""

    def load_recorded(self, request: Request) -> Completion | None:
        """Read the recorded answer to a request, None if it is not recorded."""
        host = self.hosts[request.model]
        return self._cache.load(request, host.url) if host.records_answers else None

    def look(self, trial: Trial, run: int) -> Look:
        """Return the look at the verdict that a run of a trial is requested for.

        It is the look that planned the run, if its answer is missing, else a new one. The trial's
        own recordings decide, so that it does not depend on which other trials are selected.
        """
        url = self.hosts[trial.model].url
        for earlier in reversed(range(run)):
            if look := self._cache.look(request_of(trial, earlier), url):
                return look if run < look.runs else Look(look.number + 1, trial.runs)
        return Look(1, trial.runs)

    async def answer(
        self,
        request: Request,
        subject: str,
        *,
        look: Callable[[], Look | None] = lambda: None,
        is_usable: Callable[[Completion], bool] = lambda _: True,
        judging: bool = False,
    ) -> Answer:
        """Return the answer to a request; an error is part of the answer, not raised.

        Args:
            request: The request.
            subject: Whose answer it is, in the words of the node id.
            look: Returns the look to record; called if the answer is requested.
            is_usable: Returns whether an answer is worth recording; if not, it is requested once
                more.
            judging: Whether the request is to a judge; those are billed separately.
        """
        host = self.hosts[request.model]
        bill = self.resources.bill.judgements if judging else self.resources.bill.answers
        send = partial(self._request, request, subject, look, is_usable, bill)
        if not host.records_answers or self._cache.mode == "off":
            return await send()
        # Two labels of one model, or two skills without their blocks, make equal requests.
        request_id = identity(request, host.url)
        if earlier := self._requested.get(request_id):
            answer = await earlier
            # For another run, it counts as a cache hit.
            completion = answer.completion and replace(answer.completion, replayed=True)
            return replace(answer, completion=completion)
        if completion := self.load_recorded(request):
            return Answer(completion=completion)
        if self._cache.mode == "replay":
            return Answer(completion=None, error=self._no_recording_error(request, subject))
        task = self._requested[request_id] = asyncio.create_task(send())
        answer = await task
        if answer.may_come_later:
            self._requested.pop(request_id, None)
        return answer

    async def aclose(self) -> None:
        """Close the connections; the last exception of a client that fails is raised."""
        await self._opened.aclose()

    async def _request(
        self,
        request: Request,
        subject: str,
        look: Callable[[], Look | None],
        is_usable: Callable[[Completion], bool],
        bill: list[Completion],
    ) -> Answer:
        """Request an answer from the model, once more if it is unusable, and record it."""
        # Imported here: a run whose answers are all recorded needs none of its patterns.
        from pytest_upskill.models.reasoning import without_reasoning

        host = self.hosts[request.model]
        try:
            for _ in range(2):
                completion = without_reasoning(await self._send(request, host))
                if request.model.is_language_model:
                    bill.append(completion)
                if usable := is_usable(completion):
                    break
        except (BudgetError, ProviderError) as error:
            if error.paid is not None:
                bill.append(error.paid)
            if isinstance(error, BudgetError):
                return Answer(completion=None, why_not_sent=str(error))
            return Answer(completion=None, error=str(error), may_come_later=error.retryable)
        completion = replace(completion, look=look())
        # A run in which the agent's skill was not in place measures nothing; a new one may.
        is_broken = completion.agent_run is not None and bool(completion.agent_run.broken)
        if host.records_answers and usable and not is_broken:
            self._cache.store(request, host.url, completion, subject)
        return Answer(completion=completion)

    async def _send(self, request: Request, host: Host) -> Completion:
        """Send a request to the client of its host, or have the built-in agent send its own.

        A host can read a skill block from its prompt cache only once the first answer to it has
        begun. If all requests with it were sent together, all would pay for writing it: 1.25 times
        its price instead of a tenth. So they wait for the first of them.
        """
        if host not in self._clients:
            self._clients[host] = asyncio.create_task(self._open(host))
        client = await self._clients[host]
        if request.task is not None and not host.runs_agents:
            if host not in self._agents:
                self._agents[host] = self.resources.open_agent(client)
                self._opened.push_async_callback(self._agents[host].aclose)
            return await self._agents[host].complete(request)
        batches = self.resources.batches
        in_batch = batches.enabled and host.may_have_batches and is_batchable(request)
        size = len(request.system.encode("utf-8", "replace")) if request.skill else 0
        if in_batch or not host.caches_prompts or size < _MIN_CACHED:
            return await client.complete(request)
        block = (request.model.name, request.skill)
        if warmed := self._warmed.get(block):
            await warmed.wait()
            return await client.complete(request)
        warmed = self._warmed[block] = asyncio.Event()
        try:
            return await client.complete(request)
        finally:
            # After a failure too, or the others would be sent one after the other.
            warmed.set()

    def _no_recording_error(self, request: Request, subject: str) -> str:
        """Return that a recording is missing, or what changed since, and how to record it."""
        # The message does not name the subject, so that pytest's summary shows one cause once.
        host = self.hosts[request.model]
        changed = ", ".join(self._cache.changed_fields(subject, request, host.url))
        problem = f"stale recording ({changed} changed since)" if changed else "no recording"
        record = f"record it (without a key, a maintainer does): {self._cache.record_command}"
        if changed.startswith("url "):
            record = f"ask the same host (ANTHROPIC_BASE_URL and its like), or {record}"
        if not self._cache.folder.is_dir():
            where = f"{self._cache.shown}, which does not exist"
            return f"{problem} in {where}: correct --upskill-cache-dir, or {record}"
        return f"{problem} in {self._cache.shown}: {record}"

    async def _open(self, host: Host) -> Client:
        """Open the client of a host.

        Raises:
            ProviderError: It cannot be opened, for any request.
        """
        try:
            client = await asyncio.to_thread(host.open)
            if not host.runs_agents:
                client = self._paced(host, client)
        except asyncio.CancelledError:
            raise
        except ProviderError as error:
            raise ProviderError(str(error), fatal=True, billable=False) from None
        except BaseException as error:  # noqa: BLE001  an SDK's or plugin's, such as SystemExit
            problem = f"cannot create a client for {host.name}: {describe_exception(error)}"
            raise ProviderError(problem, fatal=True, billable=False) from None
        self._opened.push_async_callback(client.aclose)
        return client

    def _paced(self, host: Host, client: Client) -> Client:
        """Return a client that sends at the host's pace, with retries, or in batches."""
        retries = Retries(
            pace=Pace(self.resources.concurrency, timeout=self.resources.timeout),
            host=urlsplit(host.url).netloc or host.name,
            activity=self.resources.activity,
        )
        direct, notes = HostClient(client, retries, self.resources.budget), self.resources.batches
        uses_batches = notes.enabled or any(note.url == host.url for note in notes.read().values())
        if not (host.may_have_batches and uses_batches):
            return direct
        return BatchClient(
            direct=direct,
            api=cast("BatchApi", client),
            url=host.url,
            notes=notes,
            budget=self.resources.budget,
            activity=self.resources.activity,
            models=[model for model, other in self.hosts.items() if other is host],
        )
