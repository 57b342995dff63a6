"""``loop``: a small agent that works with any model that calls tools.

Its model sees the names and descriptions of skills, and loads one with a tool, as in other agents:
https://agentskills.io/client-implementation/adding-skills-support.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial

from pytest_upskill.agents.run import run_agent
from pytest_upskill.agents.skill_use import SKILL_FILE
from pytest_upskill.agents.tally import RunTally
from pytest_upskill.agents.toolbox import SKILLS, TOOLS, Toolbox
from pytest_upskill.agents.workspace import AgentWorkspace
from pytest_upskill.answers.prices import max_input_tokens
from pytest_upskill.cases.catalogue import available_skills, sort_key
from pytest_upskill.cases.skill_md import read_skill_text
from pytest_upskill.models import AgentTask, Client, Completion, Request, RunLimits, Turn
from pytest_upskill.sandbox.limits import Level
from pytest_upskill.sandbox.run import Sandbox, SandboxError

VERSION = "1"
"""Changes with the prompt or the tools."""

FRAME = (
    "You are an agent. You work with tools in a workspace, which is the current folder. Do what "
    "the user asks, leave the files that you are asked for in the workspace, and then answer."
)


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


@dataclass(eq=False)
class LoopClient:
    """A client that runs the built-in agent for each request; used on one event loop."""

    client: Client
    """Sends the requests of the agent's model, with retries and within the budget."""
    sandbox: Sandbox
    """The sandbox of all tools."""
    max_runs: int
    """Maximum number of runs at once; a run that waits has cost nothing."""
    redact: Callable[[str], str]
    """Hides the keys in what tools return."""
    limits: RunLimits = field(default_factory=RunLimits)
    """Limits of each run."""

    def __post_init__(self) -> None:
        self._slots = asyncio.Semaphore(self.max_runs)

    async def complete(self, request: Request) -> Completion:
        """Run the agent on a request with a task, and return its answer with what it did.

        Raises:
            ProviderError: There is no usable reply, or the machine cannot run the agent; ``paid``
                is what the run has cost so far.
            BudgetError: The next request could exceed the budget; ``paid`` likewise.
        """
        assert request.task is not None
        offer = catalogue(request.task, request.run)
        tally = RunTally(
            task=request.task,
            skill_tool=("skill", "name"),
            redact=self.redact,
            limits=self.limits,
            offered=bool(offer),
        )
        first = replace(request, frame=FRAME, skill=offer, tools=TOOLS, task=None)
        work = partial(self._converse, first, tally)
        async with self._slots:
            return await run_agent(
                tally,
                work,
                name=request.model.label,
                version=VERSION,
                sandbox=self.sandbox,
                skills_folder=SKILLS.removeprefix("~/"),
            )

    async def _converse(self, request: Request, tally: RunTally, work: AgentWorkspace) -> str:
        """Send requests and call tools in turn until the run ends.

        Returns:
            The limit that ended the run; "" if the model has answered or chosen.
        """
        toolbox = Toolbox(tally.task, work.shell, self.limits.seconds)
        sent = [("", request.system), ("", request.user)]
        while True:
            await asyncio.to_thread(tally.note_request, sent)
            if tally.has_chosen:
                return ""
            if limit := tally.exceeded_limit():
                return limit
            completion = await self.client.complete(request)
            tally.requests += completion.attempts
            tally.note_reply(completion, max_input_tokens(request))
            if tally.has_final_answer or tally.taken:
                return ""
            results = []
            for call in completion.tool_calls:
                if toolbox.left_s <= 0:
                    return f"its tools took more than {self.limits.seconds:g} s"
                results.append(await asyncio.to_thread(toolbox.call, call))
            turn = Turn(assistant_blocks=completion.assistant_blocks, results=tuple(results))
            request = replace(request, turns=(*request.turns, turn))
            sent = [(r.call_id, r.text) for turn in request.turns for r in turn.results]

    async def aclose(self) -> None:
        """Kill the tools that run, and start no more."""
        self.sandbox.close()
