"""Runs of trigger trials: up to three requests each, after a probe that tools are called."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import replace

from pytest_upskill.completion import Completion, Request
from pytest_upskill.completions.resources import Bill, Host
from pytest_upskill.completions.source import CompletionRequest, CompletionSource
from pytest_upskill.grading.grade import Answer
from pytest_upskill.model import Model
from pytest_upskill.trials.conversation import (
    calls_tools,
    choice_of,
    joined,
    next_request,
    probe,
)
from pytest_upskill.trials.trial import Trial, request

_NO_TOOLS = (
    "{model} called no tool when told to, so its server may drop tools: serve it with a chat "
    "template for tools (llama-server: --jinja; vLLM: --enable-auto-tool-choice), or leave it out"
)
_REFUSED = "{model} was asked to call a tool: {error}"

Load = Callable[[Request], Completion | None]
"""Returns the recorded completion of a request, None if it is not recorded."""


class TriggerRunner:
    """The choices of models; used on one event loop.

    Args:
        source: Who asks the models.
        bill: Where to note what was paid for.
    """

    def __init__(self, source: CompletionSource, bill: Bill) -> None:
        self._source = source
        self._bill = bill
        self._probes: dict[tuple[Host, str], asyncio.Task[Answer]] = {}

    async def answer(self, trial: Trial, run: int, host: Host, subject: str) -> Answer:
        """Return what the model chose in a run; an error is part of the answer, not raised."""
        if trial.model.provider != "offline":
            probed = await self._probed(trial.model, host, trial.max_tokens)
            if probed.error or probed.not_sent:
                return probed
        completions: list[Completion] = []
        following: Request | None = request(trial, run)
        while following is not None:
            step = f", request {len(completions) + 1}" if completions else ""
            answer = await self._source.answer(
                CompletionRequest(
                    request=following,
                    host=host,
                    subject=f"{subject}{step}",
                    bill=self._bill.answers,
                )
            )
            if answer.completion is None:
                return answer
            completions.append(answer.completion)
            following = next_request(following, answer.completion)
        return chosen(trial, completions)

    async def _probed(self, model: Model, host: Host, max_tokens: int) -> Answer:
        """Return the answer to a model's only probe, an error if it calls no tools."""
        key = host, model.name
        if key not in self._probes:
            self._probes[key] = asyncio.create_task(self._probe(model, host, max_tokens))
        return await self._probes[key]

    async def _probe(self, model: Model, host: Host, max_tokens: int) -> Answer:
        answer = await self._source.answer(
            CompletionRequest(
                request=probe(model, max_tokens),
                host=host,
                subject=f"probe of tools [{model.label}]",
                bill=self._bill.answers,
                # A server that was fixed must not be taken for the one that dropped the tools.
                usable=calls_tools,
            )
        )
        if answer.error:
            error = _REFUSED.format(model=model.label, error=answer.error)
            return replace(answer, error=error)
        run = answer.completion and answer.completion.agent_run
        if run and run.broken:
            return replace(answer, completion=None, error=run.broken)
        if answer.completion is not None and not calls_tools(answer.completion):
            return replace(answer, completion=None, error=_NO_TOOLS.format(model=model.label))
        return answer


def chosen(trial: Trial, completions: list[Completion]) -> Answer:
    """Return the answer of a run from the completions of its requests."""
    assert trial.catalogue is not None
    choice = choice_of(completions, trial.catalogue.names)
    return Answer(completion=joined(completions), choice=choice)


def recorded_steps(
    trial: Trial, run: int, load: Load
) -> Iterator[tuple[Request, Completion | None]]:
    """Yield the requests of a run with their recorded completions, until one is not recorded."""
    following: Request | None = request(trial, run)
    while following is not None:
        completion = load(following)
        yield following, completion
        following = None if completion is None else next_request(following, completion)


def recorded_choice(trial: Trial, run: int, load: Load) -> Answer | None:
    """Return the answer of a run if all of its requests are recorded, else None."""
    completions = [completion for _, completion in recorded_steps(trial, run, load)]
    known = [completion for completion in completions if completion is not None]
    return chosen(trial, known) if len(known) == len(completions) else None
