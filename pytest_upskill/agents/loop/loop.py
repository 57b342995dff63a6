"""``loop``: a small agent that works with any model that calls tools.

Its model sees the names and descriptions of skills, and loads one with a tool, as in other agents:
https://agentskills.io/client-implementation/adding-skills-support.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pytest_upskill.agents.loop.toolbox import SKILLS, TOOLS, Done, Toolbox
from pytest_upskill.agents.programs.cli import skill_read
from pytest_upskill.agents.record.left_files import with_files_left
from pytest_upskill.agents.record.story import (
    SKILL_FILE,
    files_read,
    is_loaded,
    recorded_calls,
    why_broken,
)
from pytest_upskill.completion import (
    AgentRun,
    AgentTask,
    Client,
    Completion,
    ProviderError,
    Request,
    ToolCall,
    ToolResult,
    Turn,
    with_totals,
)
from pytest_upskill.formats.catalogue import available_skills, place
from pytest_upskill.formats.skill_md.frontmatter import read_skill_text
from pytest_upskill.spending.budget import BudgetError
from pytest_upskill.spending.caps import Caps
from pytest_upskill.spending.prices import BYTES_PER_TOKEN, most_input_tokens

InThread = Callable[..., Awaitable[Any]]
"""Calls a function that takes a while, off the event loop."""

VERSION = "1"
"""Changes with the prompt or the tools."""

FRAME = (
    "You are an agent. You work with tools in a workspace, which is the current folder. Do what "
    "the user asks, leave the files that you are asked for in the workspace, and then answer."
)


@dataclass(slots=True)
class _Course:
    """A run in progress."""

    completions: list[Completion] = field(default_factory=list)
    turns: list[Turn] = field(default_factory=list)
    calls: list[ToolCall] = field(default_factory=list)
    seconds: float = 0.0
    """Time of the tools so far."""
    tokens: int = 0
    """Tokens of all prompts and answers so far."""
    last_tokens: int = 0
    """Tokens of the last prompt and its answer, which the next prompt begins with."""

    @property
    def requests(self) -> int:
        return sum(completion.attempts for completion in self.completions)

    def answered(self, request: Request, completion: Completion) -> None:
        """Note the completion of a request."""
        self.completions.append(completion)
        counted = completion.tokens
        if counted is None:  # the server does not count them
            counted = most_input_tokens(request) // BYTES_PER_TOKEN
        self.last_tokens = counted
        self.tokens += counted

    @property
    def taken(self) -> str:
        """The first skill that the model asked for; "" for none."""
        calls = (call for each in self.completions for call in each.tool_calls)
        return next(filter(None, map(_skill_of, calls)), "")

    def decided(self, task: AgentTask) -> bool:
        """Return whether the run ends because the model chose a skill, or none in all its turns."""
        return task.chooses and bool(self.taken or len(self.completions) >= task.max_turns)


async def run_loop(
    request: Request, client: Client, toolbox: Toolbox, in_thread: InThread, caps: Caps
) -> Completion:
    """Run a model with tools until it answers, or until the run reaches a limit.

    Args:
        request: The request with a task.
        client: Sends each request of the run, with retries and within the budget.
        toolbox: The tools, in a fresh workspace.
        in_thread: Calls a tool off the event loop.
        caps: Limits of the run.

    Raises:
        ProviderError: There is no usable reply; ``paid`` is what the run has cost until then.
        BudgetError: The next request could exceed the budget; likewise.
    """
    assert request.task is not None
    course, task, limit = _Course(), request.task, ""
    offer = catalogue(task, request.run)
    asked = replace(request, frame=FRAME, skill=offer, tools=TOOLS, task=None)
    while True:
        asked = replace(asked, turns=tuple(course.turns))
        try:
            completion = await client.complete(asked)
        except (BudgetError, ProviderError) as error:
            if course.completions:
                error.paid = _together(course.completions)
            raise
        course.answered(asked, completion)
        if not completion.tool_calls or course.decided(task):
            break
        limit = caps.reached(
            turns=len(course.completions),
            max_turns=task.max_turns,
            requests=course.requests,
            tokens=course.tokens,
            following=course.last_tokens,
        )
        limit = limit or await _use_tools(course, completion, toolbox, in_thread, caps)
        if limit:
            break
    finished: Completion = await in_thread(_finished, course, request, toolbox.folder, limit)
    return finished


def catalogue(task: AgentTask, run: int) -> str:
    """Return the part of the system prompt that offers the skills, "" without one.

    Args:
        task: What the agent gets.
        run: Index of the run, which decides the order.
    """
    found = {
        each.name: {
            "name": each.name,
            "description": read_skill_text(file.text, folder=each.name).description,
            "location": f"{SKILLS}/{each.folder}/{SKILL_FILE}",
        }
        for each in task.installed
        for file in each.files
        if file.name == SKILL_FILE
    }
    listed = [found[name] for name in sorted(found, key=lambda name: place(run, name))]
    return available_skills(listed) if listed else ""


async def _use_tools(
    course: _Course, completion: Completion, toolbox: Toolbox, in_thread: InThread, caps: Caps
) -> str:
    """Carry out the calls of a reply, and return the limit that was reached, "" for none."""
    results = []
    for call in completion.tool_calls:
        left = caps.seconds - course.seconds
        if left <= 0:
            return f"its tools took more than {caps.seconds:g} s"
        done: Done = await in_thread(toolbox.call, call, left)
        course.calls.append(call)
        course.seconds += done.seconds
        results.append(ToolResult(call_id=call.id, text=done.text, failed=done.failed))
    blocks = completion.assistant_blocks
    course.turns.append(Turn(assistant_blocks=blocks, results=tuple(results)))
    return ""


def _finished(course: _Course, request: Request, workspace: Path, limit: str) -> Completion:
    """Return the completion of a run that has ended, with what it left in its workspace."""
    task = request.task
    assert task is not None
    sent = [result.text for turn in course.turns for result in turn.results]
    called = bool(task.skill) and any(
        call.name == "skill" and call.arguments.get("name") == task.skill_name
        for call in course.calls
    )
    offered, loaded = bool(catalogue(task, request.run)), is_loaded(task, sent)
    calls = [call for each in course.completions for call in each.tool_calls]
    run = AgentRun(
        version=VERSION,
        turns=len(course.completions),
        requests=course.requests,
        offered=offered,
        called=called,
        taken=task.name_of(course.taken) if task.chooses else "",
        loaded=None if task.chooses else loaded,
        read=files_read(task, sent),
        calls=recorded_calls(calls),
        limit=limit,
        broken=why_broken(task, offered=offered, denied=called and loaded is False),
    )
    if not task.chooses:
        run = with_files_left(run, request, workspace)
    return replace(_together(course.completions), agent_run=run)


def _together(completions: Sequence[Completion]) -> Completion:
    """Return the last completion of a run, with the tokens, cost and seconds of all of them."""
    retries = sum(completion.attempts - 1 for completion in completions)
    return replace(with_totals(completions), attempts=1 + retries, tool_calls=())


def _skill_of(call: ToolCall) -> str | None:
    """Return the skill that a call asks for, by its name or its folder; None for none."""
    if call.name == "skill":
        return str(call.arguments.get("name") or "").strip() or None
    return skill_read(call, SKILLS.removeprefix("~/"))
