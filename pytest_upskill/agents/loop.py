"""``loop``: a small agent that works with any model that calls tools.

Its model sees the names and descriptions of skills, and loads one with a tool, as in other agents:
https://agentskills.io/client-implementation/adding-skills-support.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from typing import TypeVar

from pytest_upskill.agents.skill_use import SKILL_FILE
from pytest_upskill.agents.tally import RunTally
from pytest_upskill.agents.toolbox import SKILLS, TOOLS, Toolbox
from pytest_upskill.agents.workspace import AgentWorkspace
from pytest_upskill.answers.budget import BudgetError
from pytest_upskill.answers.prices import max_input_tokens
from pytest_upskill.cases.catalogue import available_skills, sort_key
from pytest_upskill.cases.skill_text import read_skill_text
from pytest_upskill.models import (
    AgentTask,
    Client,
    Completion,
    ProviderError,
    Request,
    RunLimits,
    Turn,
)
from pytest_upskill.sandbox.limits import Level, cores
from pytest_upskill.sandbox.run import Sandbox, SandboxError
from pytest_upskill.sandbox.workspace import workspace

VERSION = "1"
"""Changes with the prompt or the tools."""

FRAME = (
    "You are an agent. You work with tools in a workspace, which is the current folder. Do what "
    "the user asks, leave the files that you are asked for in the workspace, and then answer."
)


def _note_request(tally: RunTally, request: Request) -> None:
    """Note what the next prompt quotes."""
    if request.turns:
        tally.note_request([(r.call_id, r.text) for turn in request.turns for r in turn.results])
    else:
        tally.note_request([("", request.system), ("", request.user)])


def catalogue(task: AgentTask, run: int) -> str:
    """Return the part of the system prompt that offers the skills, "" without any.

    Args:
        task: What the agent gets.
        run: Index of the run, which decides the order.
    """
    entries = {
        skill.name: {
            "name": skill.name,
            "description": read_skill_text(file.text, folder=skill.name).description,
            "location": f"{SKILLS}/{skill.folder}/{SKILL_FILE}",
        }
        for skill in task.installed
        for file in skill.files
        if file.name == SKILL_FILE
    }
    listed = [entries[name] for name in sorted(entries, key=lambda name: sort_key(run, name))]
    return available_skills(listed) if listed else ""


def agent_sandbox(level: Level) -> Sandbox:
    """Return the sandbox for the tools of agents.

    Args:
        level: The chosen level; ``auto`` for the strongest that works.

    Raises:
        SandboxError: The level hides no files, or does not work on this machine.
    """
    if level in {"limits", "off"}:
        raise SandboxError(
            "agents run commands that a model wrote, and sandbox level "
            f"{level!r} does not hide files from them: use --upskill-sandbox auto"
        )
    with suppress(SandboxError):
        sandbox = Sandbox(level)
        if sandbox.hides_files:
            return sandbox
    raise SandboxError(
        "agents need bubblewrap or Landlock, and neither works here: install bubblewrap and allow "
        "user namespaces, or run in a Linux container; a replay needs neither"
    )


T = TypeVar("T")


class LoopClient:
    """A client that runs the built-in agent for each request; used on one event loop.

    Args:
        client: Sends the requests of the agent's model, with retries and within the budget.
        make_sandbox: Makes the sandbox of all tools; called by the first run.
        max_runs: Maximum number of runs at once; a run that waits has cost nothing.
        redact: Hides the keys in what tools return.
        limits: Limits of each run; None for the defaults.
    """

    def __init__(
        self,
        client: Client,
        make_sandbox: Callable[[], Sandbox],
        max_runs: int,
        redact: Callable[[str], str],
        limits: RunLimits | None = None,
    ) -> None:
        self._client = client
        self._make_sandbox = make_sandbox
        self._sandbox: Sandbox | None = None
        self._slots = asyncio.Semaphore(max_runs)
        self._redact = redact
        self._limits = limits or RunLimits()
        self._threads = ThreadPoolExecutor(2 * cores(), thread_name_prefix="upskill-agent")

    async def complete(self, request: Request) -> Completion:
        """Run the agent on a request with a task, and return its answer with what it did.

        Raises:
            ProviderError: There is no usable reply, or the machine cannot run the agent.
            BudgetError: The budget is used up.
        """
        assert request.task is not None
        try:
            if self._sandbox is None:
                self._sandbox = await self._in_thread(self._make_sandbox)
            async with self._slots:
                with workspace() as home:
                    folder = SKILLS.removeprefix("~/")
                    work = AgentWorkspace(request.task, self._sandbox, home, folder)
                    await self._in_thread(work.set_up)
                    return await self._run(request, work)
        except (OSError, SandboxError) as error:
            reason = error.strerror if isinstance(error, OSError) else str(error)
            raise ProviderError(
                f"{request.model.label}: cannot run the agent: {reason}", billable=False
            ) from None

    async def _run(self, request: Request, work: AgentWorkspace) -> Completion:
        """Run a model with tools until it answers, or until the run reaches a limit.

        Args:
            request: The request with a task.
            work: The workspace, as the setup has left it.

        Raises:
            ProviderError: There is no usable reply; ``paid`` is what the run has cost so far.
            BudgetError: The next request could exceed the budget; ``paid`` likewise.
        """
        assert request.task is not None
        task = request.task
        offer = catalogue(task, request.run)
        tally = RunTally(
            task=task,
            skill_tool=("skill", "name"),
            redact=self._redact,
            limits=self._limits,
            offered=bool(offer),
        )
        first_request = replace(request, frame=FRAME, skill=offer, tools=TOOLS, task=None)
        try:
            limit = await self._converse(first_request, tally, work)
        except (BudgetError, ProviderError) as error:
            error.paid = tally.paid()
            raise
        run = tally.run(VERSION, limit)
        if not task.chooses:
            run = await self._in_thread(work.record, run, self._redact)
        return tally.completion(run)

    async def _converse(self, request: Request, tally: RunTally, work: AgentWorkspace) -> str:
        """Send requests and call tools in turn until the run ends.

        Returns:
            The limit that ended the run; "" if the model has answered or chosen.
        """
        toolbox = Toolbox(tally.task, work.shell, self._limits.seconds)
        while True:
            await self._in_thread(_note_request, tally, request)
            if tally.has_chosen:
                return ""
            if limit := tally.exceeded_limit():
                return limit
            completion = await self._client.complete(request)
            tally.requests += completion.attempts
            tally.note_reply(completion, max_input_tokens(request))
            if tally.has_final_answer or tally.taken:
                return ""
            results = []
            for call in completion.tool_calls:
                if toolbox.left_s <= 0:
                    return f"its tools took more than {self._limits.seconds:g} s"
                results.append(await self._in_thread(toolbox.call, call))
            turn = Turn(assistant_blocks=completion.assistant_blocks, results=tuple(results))
            request = replace(request, turns=(*request.turns, turn))

    async def aclose(self) -> None:
        """Kill the tools that run, and start no more."""
        if self._sandbox is not None:
            self._sandbox.close()
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _in_thread(self, function: Callable[..., T], *args: object) -> T:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, function, *args)
