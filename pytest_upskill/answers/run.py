"""The answer of one run: its requests, then the results of compilers and of the judge.

Before a model is to choose a skill, a probe shows whether it calls tools at all.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING

from pytest_upskill.answers.completions import Completions
from pytest_upskill.answers.progress import JUDGING, InFlight
from pytest_upskill.answers.resources import Host, Resources
from pytest_upskill.checks import CheckError, CheckResult, Sandboxed
from pytest_upskill.checks.files import Left
from pytest_upskill.checks.judge import GIVEN_UP, MOST_UNUSABLE, cause_of
from pytest_upskill.grading.grade import Answer, left_by, sandboxed_of, with_changes
from pytest_upskill.models import Completion, Model, Request
from pytest_upskill.sandbox.limits import cores
from pytest_upskill.trials import trigger_trial
from pytest_upskill.trials.trial import Trial, request_of

if TYPE_CHECKING:
    from pytest_upskill.checks.compile import Compilers

_NEEDS_TOOLS = (
    "choose a model that calls tools, and check that its server passes them on (llama-server: "
    "--jinja; vLLM: --enable-auto-tool-choice)"
)

JUDGEMENT = "judgement of "
"""Prefix of the subject in the recording of a judgement."""


class Runs:
    """Gets the answers of runs; used on one event loop.

    Args:
        trials: All trials that will run.
        source: The source of completions.
        resources: The compilers and other resources of the session.
    """

    def __init__(self, trials: Iterable[Trial], source: Completions, resources: Resources) -> None:
        self._source = source
        self._tool_probes: dict[tuple[Host, str], asyncio.Task[Answer | None]] = {}
        self._activity = resources.activity
        # Slow to make, and most runs have nothing to build.
        has_builds = any(sandboxed_of(trial.case) for trial in trials)
        self._builds = Builds(resources.compilers(), resources.activity) if has_builds else None
        self._unusable = 0
        """Number of answers in a row without a usable judgement."""
        self._given_up = ""
        """Why the judge is no longer asked."""

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
        if trial.judge is None or answer.error or not trial.case.judge_checks:
            return answer
        with self._activity.doing(JUDGING):
            return await self._judge(trial, trial.judge, answer, f"{JUDGEMENT}{subject}")

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
            trigger_trial.probe(model, max_tokens),
            f"probe of tools [{model.label}]",
            is_usable=trigger_trial.calls_tools,
        )
        completion = answer.completion
        if completion is None:
            error = answer.error and f"{model.label} was asked to call a tool: {answer.error}"
            error = f"{error}; {_NEEDS_TOOLS}" if "tool" in (answer.error or "") else error
        elif completion.agent_run is not None and completion.agent_run.broken:
            error = completion.agent_run.broken
        elif trigger_trial.calls_tools(completion):
            return None
        else:
            error = f"{model.label} called no tool when told to: {_NEEDS_TOOLS}"
        return replace(answer, completion=None, error=error)

    async def _complete(self, trial: Trial, run: int, subject: str) -> Answer:
        """Make the requests of a run, most often a single one, and return its answer."""
        completions: list[Completion] = []
        look = partial(self._source.look, trial, run)
        step: Request | None = request_of(trial, run)
        while step is not None:
            number = f", request {len(completions) + 1}" if completions else ""
            answer = await self._source.answer(step, f"{subject}{number}", look=look)
            if answer.completion is None:
                return answer
            completions.append(answer.completion)
            step = trigger_trial.next_request(step, answer.completion)
        return _join_steps(trial, completions)

    async def _judge(self, trial: Trial, judge: Model, answer: Answer, subject: str) -> Answer:
        """Return an answer with the judge's results, or with the reason why there are none.

        A judgement is requested once more if it is unusable. The judge is asked until it gives
        nothing usable three times in a row.

        Args:
            trial: Has the statements.
            judge: The judge.
            answer: The answer, to which the results are added.
            subject: What is asked for, in messages and recordings.
        """
        # Imported here: most runs have no judge.
        from pytest_upskill.grading.judge import judge_request, read_judgement

        assert answer.completion is not None
        statements, text = trial.case.judge_checks, with_changes(answer.completion)

        def is_usable(reply: Completion) -> bool:
            with suppress(CheckError):
                return bool(read_judgement(reply, statements, text))
            return False

        question = request_of(trial, run=0).user
        asked = judge_request(judge, trial.case, question=question, answer=text)
        if self._given_up and self._source.load_recorded(asked) is None:
            return replace(answer, error=f"judge: {self._given_up}")
        reply = await self._source.answer(asked, subject, is_usable=is_usable, judging=True)
        if reply.completion is None:
            error = reply.error and f"judge: {reply.error}"
            return replace(answer, error=error, why_not_sent=reply.why_not_sent)
        answer = replace(answer, judgement=reply.completion)
        try:
            judged = read_judgement(reply.completion, statements, text)
        except CheckError as error:
            self._unusable += 1
            if self._unusable >= MOST_UNUSABLE:
                self._given_up = f"{GIVEN_UP}{cause_of(str(error))}"
            return replace(answer, error=str(error))
        self._unusable = 0
        return replace(answer, judged=judged)


def recorded_steps(
    trial: Trial, run: int, load: Callable[[Request], Completion | None]
) -> Iterator[tuple[Request, Completion | None]]:
    """Yield the requests of a run with their recorded completions, until one is not recorded.

    Args:
        trial: The trial.
        run: Index of the run.
        load: Returns the recorded completion of a request, None if it is not recorded.
    """
    step: Request | None = request_of(trial, run)
    while step is not None:
        completion = load(step)
        yield step, completion
        step = None if completion is None else trigger_trial.next_request(step, completion)


def _join_steps(trial: Trial, completions: Sequence[Completion]) -> Answer:
    """Return the answer of a run from the completions of its requests."""
    if trial.catalogue is None:
        return Answer(completion=completions[0])
    choice = trigger_trial.choice_of(completions, trial.catalogue.names)
    return Answer(completion=trigger_trial.join_completions(completions), choice=choice)


Compiled = tuple[tuple[CheckResult, ...], ...]
"""The results of each check of a case that a program decides."""


class Builds:
    """Runs the checks that compile or run an answer, one at a time for each core.

    Used on one event loop.

    Args:
        compilers: The compilers and runners.
        activity: The record of builds in progress.
    """

    def __init__(self, compilers: Compilers, activity: InFlight) -> None:
        self._compilers = compilers
        self._activity = activity
        self._tasks: dict[tuple[str, str, bytes], asyncio.Task[Compiled]] = {}
        self._threads = ThreadPoolExecutor(cores(), thread_name_prefix="upskill-compile")

    async def answer(
        self, trial: Trial, checks: Sequence[Sandboxed], completion: Completion
    ) -> Answer:
        """Return the answer with the results of its compilers; equal answers share one build."""
        left = left_by(trial.case, completion)
        content = repr((completion.text, sorted(left.all_files, key=lambda file: file.name)))
        digest = sha256(content.encode("utf-8", "surrogatepass")).digest()
        key = str(trial.skill.case_file), trial.case.id, digest
        if key not in self._tasks:
            self._tasks[key] = asyncio.create_task(self._decide(checks, completion.text, left))
        try:
            return Answer(completion=completion, sandboxed=await self._tasks[key])
        except CheckError as error:
            return Answer(completion=completion, error=str(error))

    def close(self) -> None:
        """Kill running compilers and start no more."""
        self._compilers.close()
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _decide(self, checks: Sequence[Sandboxed], text: str, left: Left) -> Compiled:
        loop = asyncio.get_running_loop()
        builds = (
            loop.run_in_executor(self._threads, self._run, check, text, left) for check in checks
        )
        return tuple(await asyncio.gather(*builds))

    def _run(self, check: Sandboxed, text: str, left: Left) -> tuple[CheckResult, ...]:
        with self._activity.doing(check.name):
            return self._compilers.decide(check, text, left)
