"""The answer of one run: its requests, then the results of compilers and of the judge.

Before a model is to choose a skill, a probe shows whether it calls tools at all.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from pytest_upskill.answers.progress import JUDGING
from pytest_upskill.answers.resources import Host, Resources
from pytest_upskill.answers.source import CompletionSource
from pytest_upskill.grading.grade import Answer, sandboxed_of
from pytest_upskill.models import Completion, Model, Request
from pytest_upskill.trials.trial import Trial, request
from pytest_upskill.trials.trigger_trial import (
    calls_tools,
    choice_of,
    join_completions,
    next_request,
    probe,
)

_NO_TOOLS = (
    "{model} called no tool when told to: choose a model that calls tools, and check that its "
    "server passes them on (llama-server: --jinja; vLLM: --enable-auto-tool-choice)"
)


if TYPE_CHECKING:
    from pytest_upskill.answers.builds import Builds
    from pytest_upskill.answers.judging import Judgements

JUDGEMENT = "judgement of "
"""Prefix of the subject in the recording of a judgement."""

Load = Callable[[Request], Completion | None]
"""Returns the recorded completion of a request, None if it is not recorded."""


class TrialRunner:
    """Gets the answers of runs; used on one event loop.

    Args:
        trials: All trials that will run.
        source: The source of completions.
        resources: The compilers and other resources of the session.
        judge: Judge of the statements about answers; None for no judge.
    """

    def __init__(
        self,
        trials: Iterable[Trial],
        source: CompletionSource,
        resources: Resources,
        *,
        judge: Model | None,
    ) -> None:
        self._source = source
        self._tool_probes: dict[tuple[Host, str], asyncio.Task[Answer | None]] = {}
        self._activity = resources.activity
        self._builds: Builds | None = None
        self._judgements: Judgements | None = None
        # Imported here: most runs have nothing to build and no judge.
        if any(sandboxed_of(trial.case) for trial in trials):
            from pytest_upskill.answers.builds import Builds

            self._builds = Builds(resources.compilers(), resources.activity)
        if judge is not None:
            from pytest_upskill.answers.judging import Judgements

            self._judgements = Judgements(judge, source)

    def recorded_answer(self, trial: Trial, run: int) -> Answer | None:
        """Read the answer of a run if it is recorded and needs neither compiler nor judge.

        It is read on the caller's thread, not on the loop: a thread that reads files beside one
        that runs items loses more time to Python's interpreter lock than to the files.
        """
        if sandboxed_of(trial.case) or trial.case.judge_checks:
            return None
        steps = recorded_steps(trial, run, self._source.load_recorded)
        completions = [completion for _, completion in steps]
        known = [completion for completion in completions if completion is not None]
        return _join_steps(trial, known) if len(known) == len(completions) else None

    async def answer(self, trial: Trial, run: int) -> Answer:
        """Return the answer of a run; an error is part of the answer, not raised."""
        subject = f"{trial.skill.name}::{trial.name} run {run + 1}"
        if trial.chooses:
            failure = await self._failed_probe(trial.model, trial.max_tokens)
            if failure is not None:
                return failure
        answer = await self._complete(trial, run, subject)
        if answer.completion is None or answer.ended_at_limit:
            return answer
        if self._builds and (sandboxed := sandboxed_of(trial.case)):
            answer = await self._builds.answer(trial, sandboxed, answer.completion)
        if self._judgements is None or answer.error or not trial.case.judge_checks:
            return answer
        with self._activity.doing(JUDGING):
            return await self._judgements.judge(trial, answer, f"{JUDGEMENT}{subject}")

    async def aclose(self) -> None:
        """Kill running compilers and close the connections.

        Raises:
            Exception: A client raised it when it was closed.
        """
        if self._builds:
            self._builds.close()
        await self._source.aclose()

    async def _failed_probe(self, model: Model, max_tokens: int) -> Answer | None:
        """Return the error that each run of a model gets, None if the model calls tools.

        Each model is probed once.
        """
        if not model.is_language_model:
            return None
        key = self._source.hosts[model], model.name
        if key not in self._tool_probes:
            self._tool_probes[key] = asyncio.create_task(self._probe_tools(model, max_tokens))
        return await self._tool_probes[key]

    async def _probe_tools(self, model: Model, max_tokens: int) -> Answer | None:
        # An answer without a tool call is not recorded, as the server may be repaired later.
        answer = await self._source.answer(
            probe(model, max_tokens), f"probe of tools [{model.label}]", is_usable=calls_tools
        )
        completion = answer.completion
        if completion is None:
            error = answer.error and f"{model.label} was asked to call a tool: {answer.error}"
        elif completion.agent_run is not None and completion.agent_run.broken:
            error = completion.agent_run.broken
        elif calls_tools(completion):
            return None
        else:
            error = _NO_TOOLS.format(model=model.label)
        return replace(answer, completion=None, error=error)

    async def _complete(self, trial: Trial, run: int, subject: str) -> Answer:
        """Make the requests of a run, most often a single one, and return its answer."""
        completions: list[Completion] = []
        look = partial(self._source.look, trial, run)
        step: Request | None = request(trial, run)
        while step is not None:
            number = f", request {len(completions) + 1}" if completions else ""
            answer = await self._source.answer(step, f"{subject}{number}", look=look)
            if answer.completion is None:
                return answer
            completions.append(answer.completion)
            step = next_request(step, answer.completion)
        return _join_steps(trial, completions)


def recorded_steps(
    trial: Trial, run: int, load: Load
) -> Iterator[tuple[Request, Completion | None]]:
    """Yield the requests of a run with their recorded completions, until one is not recorded."""
    step: Request | None = request(trial, run)
    while step is not None:
        completion = load(step)
        yield step, completion
        step = None if completion is None else next_request(step, completion)


def _join_steps(trial: Trial, completions: Sequence[Completion]) -> Answer:
    """Return the answer of a run from the completions of its requests."""
    if trial.catalogue is None:
        return Answer(completion=completions[0])
    choice = choice_of(completions, trial.catalogue.names)
    return Answer(completion=join_completions(completions), choice=choice)
