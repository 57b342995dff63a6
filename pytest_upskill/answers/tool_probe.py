"""The probe that shows whether a model calls tools at all, before it is to choose a skill."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from pytest_upskill.answers.resources import Host
from pytest_upskill.answers.source import CompletionSource
from pytest_upskill.grading.grade import Answer
from pytest_upskill.models import Model
from pytest_upskill.trials.conversation import calls_tools, probe

_NO_TOOLS = (
    "{model} called no tool when told to, so its server may drop tools: serve it with a chat "
    "template for tools (llama-server: --jinja; vLLM: --enable-auto-tool-choice), or leave it out"
)
_FAILED = "{model} was asked to call a tool: {error}"


class ToolProbe:
    """Probes each model once; used on one event loop.

    Args:
        source: The source of completions.
    """

    def __init__(self, source: CompletionSource) -> None:
        self._source = source
        self._probes: dict[tuple[Host, str], asyncio.Task[Answer | None]] = {}

    async def failure(self, model: Model, max_tokens: int) -> Answer | None:
        """Return the error that each run of the model gets, None if the model calls tools."""
        if not model.is_language_model:
            return None
        key = self._source.hosts[model], model.name
        if key not in self._probes:
            self._probes[key] = asyncio.create_task(self._probe(model, max_tokens))
        return await self._probes[key]

    async def _probe(self, model: Model, max_tokens: int) -> Answer | None:
        # An answer without a tool call is not recorded, as the server may be repaired later.
        answer = await self._source.answer(
            probe(model, max_tokens), f"probe of tools [{model.label}]", is_usable=calls_tools
        )
        if answer.why_not_sent:
            return answer
        error = _problem(model, answer)
        return replace(answer, completion=None, error=error) if error else None


def _problem(model: Model, answer: Answer) -> str:
    """Return why a model cannot choose a skill, by its answer to the probe; "" if it can."""
    if answer.completion is None:
        return _FAILED.format(model=model.label, error=answer.error)
    run = answer.completion.agent_run
    if run is not None and run.broken:
        return run.broken
    return "" if calls_tools(answer.completion) else _NO_TOOLS.format(model=model.label)
