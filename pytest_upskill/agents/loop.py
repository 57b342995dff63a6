"""``loop``: a small agent that works with any model that calls tools.

Its model sees the names and descriptions of skills, and loads one with a tool, as in other agents:
https://agentskills.io/client-implementation/adding-skills-support.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pytest_upskill.agents.left_files import TooMuchLeft
from pytest_upskill.agents.story import SKILL_FILE, files_read, is_loaded, why_broken
from pytest_upskill.agents.toolbox import SKILLS, TOOLS, Done, Toolbox
from pytest_upskill.completion import (
    AgentRun,
    AgentTask,
    Client,
    Completion,
    ProviderError,
    Request,
    ToolCall,
    ToolResult,
    ToolUse,
    Turn,
    with_totals,
)
from pytest_upskill.formats.catalogue import available_skills
from pytest_upskill.formats.skill_md.frontmatter import read_skill_text
from pytest_upskill.spending.budget import BudgetError
from pytest_upskill.spending.caps import Caps
from pytest_upskill.spending.prices import most_input_tokens

InThread = Callable[..., Awaitable[Any]]
"""Calls a function that takes a while, off the event loop."""

VERSION = "1"
"""Changes with the prompt or the tools."""

FRAME = (
    "You are an agent. You work with tools in a workspace, which is the current folder. Do what "
    "the user asks, leave the files that you are asked for in the workspace, and then answer."
)
_BYTES_PER_TOKEN = 4
_LONGEST_INPUT = 2_000
"""Characters of a call's arguments in a record."""


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
            counted = most_input_tokens(request) // _BYTES_PER_TOKEN
        self.last_tokens = counted
        self.tokens += counted


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
    asked = replace(request, frame=FRAME, skill=catalogue(task), tools=TOOLS, task=None)
    while True:
        asked = replace(asked, turns=tuple(course.turns))
        try:
            completion = await client.complete(asked)
        except (BudgetError, ProviderError) as error:
            if course.completions:
                error.paid = _together(course.completions)
            raise
        course.answered(asked, completion)
        if not completion.tool_calls:
            break
        limit = _limit_reached(course, task, caps)
        limit = limit or await _use_tools(course, completion, toolbox, in_thread, caps)
        if limit:
            break
    finished: Completion = await in_thread(_finished, course, task, toolbox, limit)
    return finished


def catalogue(task: AgentTask) -> str:
    """Return the part of the system prompt that offers the skill, "" without one."""
    body = next((file.text for file in task.skill if file.name == SKILL_FILE), None)
    if body is None:
        return ""
    skill = read_skill_text(body, folder=task.skill_name)
    fields = {
        "name": task.skill_name,
        "description": skill.description,
        "location": f"{SKILLS}/{task.skill_folder}/{SKILL_FILE}",
    }
    return available_skills([fields])


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


def _limit_reached(course: _Course, task: AgentTask, caps: Caps) -> str:
    """Return the limit that the next request would exceed, "" for none."""
    if len(course.completions) >= task.max_turns:
        return f"it needs more than {task.max_turns} turns"
    if course.requests >= caps.requests:
        return f"it needs more than {caps.requests} requests"
    if course.tokens + course.last_tokens > caps.tokens:
        return f"it needs more than {caps.tokens:,} tokens"
    return ""


def _finished(course: _Course, task: AgentTask, toolbox: Toolbox, limit: str) -> Completion:
    """Return the completion of a run that has ended, with what it left."""
    before = {file.name: file for file in task.workspace}
    try:
        after = toolbox.left_files()
    except TooMuchLeft as error:
        after, limit = before, limit or str(error)
    sent = [result.text for turn in course.turns for result in turn.results]
    called = bool(task.skill) and any(
        call.name == "skill" and call.arguments.get("name") == task.skill_name
        for call in course.calls
    )
    offered, loaded = bool(catalogue(task)), is_loaded(task, sent)
    run = AgentRun(
        version=VERSION,
        changed=tuple(file for name, file in after.items() if before.get(name) != file),
        deleted=tuple(name for name in before if name not in after),
        turns=len(course.completions),
        requests=course.requests,
        offered=offered,
        called=called,
        loaded=loaded,
        read=files_read(task, sent),
        calls=tuple(map(_use, course.calls)),
        limit=limit,
        broken=why_broken(task, offered=offered, called=called, loaded=loaded),
    )
    return replace(_together(course.completions), agent_run=run)


def _together(completions: Sequence[Completion]) -> Completion:
    """Return the last completion of a run with what all of them took."""
    retries = sum(completion.attempts - 1 for completion in completions)
    return replace(with_totals(completions), attempts=1 + retries, tool_calls=())


def _use(call: ToolCall) -> ToolUse:
    said = call.malformed or json.dumps(call.arguments, ensure_ascii=False)
    return ToolUse(name=call.name[:100], input=said[:_LONGEST_INPUT])
