"""``loop``: a small agent that works with any model that calls tools.

Its model sees the names and descriptions of skills, and loads one with a tool, as in other agents:
https://agentskills.io/client-implementation/adding-skills-support.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

from pytest_upskill.agents.loop.toolbox import SKILLS, TOOLS, Toolbox
from pytest_upskill.agents.record.left_files import with_left_files
from pytest_upskill.agents.record.skill_use import SKILL_FILE, skill_in_call
from pytest_upskill.agents.record.tally import RunTally
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
)
from pytest_upskill.formats.catalogue import available_skills, place
from pytest_upskill.formats.skill_md.frontmatter import read_skill_text
from pytest_upskill.spending.budget import BudgetError
from pytest_upskill.spending.caps import Caps
from pytest_upskill.spending.prices import max_input_tokens

InThread = Callable[..., Awaitable[Any]]
"""Calls a function that takes a while, off the event loop."""

VERSION = "1"
"""Changes with the prompt or the tools."""

FRAME = (
    "You are an agent. You work with tools in a workspace, which is the current folder. Do what "
    "the user asks, leave the files that you are asked for in the workspace, and then answer."
)


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
    task, limit = request.task, ""
    offer = catalogue(task, request.run)
    tally = RunTally(
        task=task,
        skill_of=_skill_of,
        is_denied=lambda *_: False,  # its own tool returns what is installed
        caps=caps,
        offered=bool(offer),
        loaded=False,
    )
    model_request = replace(request, frame=FRAME, skill=offer, tools=TOOLS, task=None)
    while True:
        seen = [result for turn in model_request.turns for result in turn.results]
        last = model_request.turns[-1].results if model_request.turns else ()
        tally.note_request(
            [each.text for each in seen], [(each.call_id, each.text) for each in last]
        )
        try:
            completion = await client.complete(model_request)
        except (BudgetError, ProviderError) as error:
            if tally.replies:
                error.paid = tally.completion()
            raise
        tally.requests += completion.attempts
        tally.note_reply(completion, max_input_tokens(model_request))
        if tally.has_final_answer or tally.has_chosen:
            break
        if limit := tally.exceeded_limit():
            break
        results = await _use_tools(completion, toolbox, in_thread)
        if results is None:
            limit = f"its tools took more than {caps.seconds:g} s"
            break
        turn = Turn(assistant_blocks=completion.assistant_blocks, results=results)
        model_request = replace(model_request, turns=(*model_request.turns, turn))
    run: AgentRun = tally.run(VERSION, limit)
    if not task.chooses:
        run = await in_thread(with_left_files, run, request, toolbox.folder)
    return tally.completion(run)


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
    completion: Completion, toolbox: Toolbox, in_thread: InThread
) -> tuple[ToolResult, ...] | None:
    """Carry out the calls of a reply; return None if the time of the tools ends before."""
    results = []
    for call in completion.tool_calls:
        if toolbox.left_s <= 0:
            return None
        results.append(await in_thread(toolbox.call, call))
    return tuple(results)


def _skill_of(call: ToolCall) -> str:
    """Return the skill that a call asks for, by its name or its folder; "" for none."""
    if call.name == "skill":
        return str(call.arguments.get("name") or "").strip()
    return skill_in_call(call, SKILLS.removeprefix("~/"))
