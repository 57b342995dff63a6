"""One run's answer: recorded or asked for, with what compilers and the judge say of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from pytest_upskill.activity import Activity
from pytest_upskill.budget import Budget, BudgetError
from pytest_upskill.cache import Cache, identity
from pytest_upskill.checks import CheckError
from pytest_upskill.completion import Completion, ProviderError, Request
from pytest_upskill.daemon import in_daemon_thread
from pytest_upskill.first_calls import FirstCalls
from pytest_upskill.grade import Answer, sandboxed_of, statements_of
from pytest_upskill.models import Model
from pytest_upskill.plan import Trial, request
from pytest_upskill.prices import Prices
from pytest_upskill.providers import Client

if TYPE_CHECKING:
    from pytest_upskill.compile import Compilers, Language
    from pytest_upskill.compiling import Compiling

_CHANGED = MappingProxyType(
    {
        "model": "the model",
        "url": "its address",
        "frame": "this plugin",
        "skill": "SKILL.md",
        "user": "the case",
        "max_tokens": "--upskill-max-tokens",
    }
)

JUDGEMENT = "judgement of "
"""What the subject of a judgement's recording begins with."""

Key = tuple[str, int]
"""Node id of a trial and index of the run."""


@dataclass(frozen=True, slots=True)
class Host:
    """An endpoint; the models behind it share its connections and its limit."""

    name: str
    url: str
    """Its address without credentials, empty where there is none."""
    open: Callable[[], Client]
    """Make the client. Slow, as it imports the provider's SDK: called once, off the loop."""
    recorded: bool
    """Whether its answers are kept: those of no real model are not."""
    caches_prompts: bool = False
    """Whether it keeps the skill blocks it was sent, for the price of sending them again."""
    given: bool = False
    """Whether a plugin's hook made its client."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bill:
    """What was paid for, whether or not a result came of it."""

    answers: list[Completion] = field(default_factory=list)
    judgements: list[Completion] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What to ask, whom, and what for."""

    asked: Request
    host: Host
    subject: str
    """Whose answer it is, in the words of the node id."""
    bill: list[Completion]
    """Where to note what was paid for."""
    usable: Callable[[Completion], bool] = lambda _: True
    """Whether an answer is worth recording."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    """What answering uses beside the models, one of each in a session."""

    cache: Cache
    languages: tuple[Language, ...]
    """What plugins add to those that are built in."""
    compilers: Callable[[], Compilers]
    """Give what builds and runs code. Slow to import: called only where a case needs it."""
    prices: Prices
    budget: Budget
    activity: Activity
    bill: Bill


class Asker:
    """Holds the open clients; lives on the fetcher's loop.

    Args:
        trials: By node id.
        hosts: Where each model is served.
        resources: What else it takes.
        concurrency: Requests in flight at one host.
        recording: The command that records what a replay lacks.
        judge: Who decides statements about answers; None for nobody.
    """

    def __init__(
        self,
        trials: Mapping[str, Trial],
        hosts: Mapping[Model, Host],
        resources: Resources,
        *,
        concurrency: int,
        recording: str,
        judge: Model | None,
    ) -> None:
        self._trials = trials
        self._hosts = hosts
        self._cache = resources.cache
        self._compiling = _compiling(trials.values(), resources)
        self._resources = resources
        self._concurrency = concurrency
        self._recording = recording
        self._judge = judge
        self._clients: dict[Host, asyncio.Task[Client]] = {}
        self._asked: dict[str, asyncio.Task[Answer]] = {}
        self._answers: dict[str, Answer] = {}
        self._first_calls = FirstCalls()

    def recorded(self, key: Key) -> Answer | None:
        """Read one run's answer, if it is recorded and nothing but its text is to be looked at.

        Here, not on the loop: a thread that reads files beside one that runs items loses more time
        to Python's interpreter lock than to the files.
        """
        nodeid, run = key
        trial = self._trials[nodeid]
        host = self._hosts[trial.model]
        if not host.recorded or sandboxed_of(trial.case) or statements_of(trial.case):
            return None
        completion = self._cache.load(request(trial, run), host.url)
        return None if completion is None else Answer(completion=completion)

    async def answer(self, key: Key) -> Answer:
        """Get one run's answer; what keeps it from coming is told, not raised."""
        nodeid, run = key
        trial = self._trials[nodeid]
        subject = f"{trial.skill.name}::{trial.name} run {run + 1}"
        answer = await self._once(
            Question(
                asked=request(trial, run),
                host=self._hosts[trial.model],
                subject=subject,
                bill=self._resources.bill.answers,
            )
        )
        if answer.completion is None:
            return answer
        if self._compiling and (sandboxed := sandboxed_of(trial.case)):
            answer = await self._compiling.answer(trial, sandboxed, answer.completion)
        if self._judge is None or answer.error or not statements_of(trial.case):
            return answer
        return await self._judged(self._judge, trial, answer, subject)

    async def aclose(self) -> None:
        """Kill running compilers and close the connections.

        Raises:
            ExceptionGroup: What clients raised that would not close.
        """
        if self._compiling:
            self._compiling.close()
        errors = []
        for task in self._clients.values():
            if task.done() and not task.cancelled() and task.exception() is None:
                try:
                    await task.result().aclose()
                except Exception as error:  # noqa: BLE001  the others are to be closed too
                    errors.append(error)
        if errors:
            raise ExceptionGroup("clients that would not close", errors)

    async def _judged(self, judge: Model, trial: Trial, answer: Answer, subject: str) -> Answer:
        """Add what the judge says of an answer; it is kept, counted and limited as any other."""
        from pytest_upskill.judging import judge_request, read_judgement

        assert answer.completion is not None
        text, statements = answer.completion.text, statements_of(trial.case)
        question = request(trial, run=0).user

        def usable(said: Completion) -> bool:
            with suppress(CheckError):
                return bool(read_judgement(said, statements, text))
            return False

        said = await self._once(
            Question(
                asked=judge_request(judge, statements, question=question, answer=text),
                host=self._hosts[judge],
                subject=f"{JUDGEMENT}{subject}",
                bill=self._resources.bill.judgements,
                usable=usable,
            )
        )
        if said.completion is None:
            error = said.error and f"judge: {said.error}"
            return replace(answer, error=error, unasked=said.unasked)
        try:
            results = read_judgement(said.completion, statements, text)
        except CheckError as error:
            return replace(answer, error=str(error), judgement=said.completion)
        return replace(answer, judged=results, judgement=said.completion)

    async def _once(self, question: Question) -> Answer:
        """Get what was or will be answered, whoever else asks the same."""
        if not question.host.recorded or self._cache.mode == "off":
            return await self._pay(question)
        # Two labels of one model, or two skills without their blocks, ask the same.
        same = identity(question.asked, question.host.url)
        if same in self._answers:
            return _paid_already(self._answers[same])
        first = same not in self._asked
        if first:
            completion = self._cache.load(question.asked, question.host.url)
            if completion is not None:
                return Answer(completion=completion)
            if self._cache.mode == "replay":
                return Answer(completion=None, error=self._unrecorded(question))
            self._asked[same] = asyncio.create_task(self._pay(question))
        answer = self._answers[same] = await self._asked[same]
        # A task takes ten times the memory of what it leaves.
        self._asked.pop(same, None)
        return answer if first else _paid_already(answer)

    async def _pay(self, question: Question) -> Answer:
        """Ask the model, within the budget, and keep what it answers."""
        try:
            completion = await self._ask(question.asked, question.host)
        except BudgetError as error:
            return Answer(completion=None, unasked=str(error))
        except ProviderError as error:
            return Answer(completion=None, error=str(error))
        if question.asked.model.provider != "offline":
            question.bill.append(completion)
        if question.host.recorded and question.usable(completion):
            self._cache.store(question.asked, question.host.url, completion, question.subject)
        return Answer(completion=completion)

    async def _ask(self, asked: Request, host: Host) -> Completion:
        client = await self._client(host)
        if not host.caches_prompts:
            return await client.complete(asked)
        async with self._first_calls.turn(asked):
            return await client.complete(asked)

    def _unrecorded(self, question: Question) -> str:
        """Say what a replay lacks and how to record it."""
        subject, asked, url = question.subject, question.asked, question.host.url
        changed = ", ".join(
            _CHANGED.get(what, what) for what in self._cache.changes(subject, asked, url)
        )
        problem = f"stale recording ({changed} changed since)" if changed else "no recording"
        return f"{subject}: {problem} in {self._cache.folder}: record it: {self._recording}"

    async def _client(self, host: Host) -> Client:
        task = self._clients.get(host)
        if task is None:
            task = self._clients[host] = asyncio.create_task(self._open(host))
        return await task

    async def _open(self, host: Host) -> Client:
        # Only here: a run that asks no model needs neither SDK nor retries.
        from pytest_upskill.paying import PayingClient
        from pytest_upskill.retry import RetryingClient, Slots

        client, shared = await in_daemon_thread(host.open), self._resources
        return RetryingClient(
            PayingClient(client, shared.budget, shared.prices, shared.activity),
            slots=Slots(self._concurrency),
            host=urlsplit(host.url).netloc or host.name,
            activity=shared.activity,
        )


def _paid_already(answer: Answer) -> Answer:
    """Make the answer of one run that of another, which costs nothing more."""
    if answer.completion is None:
        return answer
    return replace(answer, completion=replace(answer.completion, replayed=True))


def _compiling(trials: Iterable[Trial], resources: Resources) -> Compiling | None:
    checks = [check for trial in trials for check in sandboxed_of(trial.case)]
    if not checks:
        return None
    from pytest_upskill.compiling import Compiling

    return Compiling(resources.compilers(), resources.activity, checks)
