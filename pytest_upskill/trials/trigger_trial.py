"""A trigger trial's conversation: what is requested, and what the model chose."""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from pytest_upskill.cases.catalogue import Catalogue, ListedSkill
from pytest_upskill.checks.files import NO_SETUP, Setup, WorkspaceFile
from pytest_upskill.models import AgentTask, Completion, Model, Request, Tool, ToolCall
from pytest_upskill.models.completion import with_totals
from pytest_upskill.models.request import InstalledSkill, ToolResult, Turn

MOST_REQUESTS = 3
"""Requests of one run: a model may look around twice before it chooses a skill."""

FRAME = "You are an assistant that works in the user's folder with tools. Do what the user asks."
"""System prompt of every trigger trial, before the catalogue."""

SKILL_TOOL = "skill"
_LOOKED: Mapping[str, str] = {
    "read_file": "The file does not exist yet.",
    "list_files": "The folder is empty.",
    "bash": "(no output)",
}
"""The reply to a call of each neutral tool, always the same."""

LOAD_SKILL = Tool.of_texts(
    SKILL_TOOL,
    "Load the full instructions of a skill.",
    name="Name of the skill, as in available_skills.",
)
"""The tool by which a model chooses a skill, and the built-in agent loads one."""

TOOLS = (
    LOAD_SKILL,
    Tool.of_texts("read_file", "Read a text file.", path="Path from the user's folder."),
    Tool.of_texts("list_files", "List the files of a folder.", path="Path from the user's folder."),
    Tool.of_texts("bash", "Run a shell command in the user's folder.", command="The command."),
)

_PROBED = ListedSkill(name="greeting", description="Use when asked to load the skill greeting.")
_PROBE = "Load the skill greeting: call the tool skill with the name greeting, and do nothing else."


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What a model chose in one run."""

    taken: str | None
    """Name of the skill that it took, as the model wrote it; None for none."""
    text: str
    """What happened, in a few words."""


def choosing(
    request: Request,
    *,
    catalogue: Catalogue,
    own: ListedSkill,
    workspace: tuple[WorkspaceFile, ...] = (),
    setup: Setup = NO_SETUP,
) -> Request:
    """Return a request that begins a run in which its model chooses among skills.

    An agent lists the skills in its own way. They are installed with names and descriptions only,
    as the run ends before one is loaded: so a change of their instructions changes no run.

    Args:
        request: What is asked of which model, and in which run.
        catalogue: The skills that it can choose from.
        own: The skill under test.
        workspace: The files that an agent finds.
        setup: What is done with them before it starts.
    """
    if not request.model.agent:
        return replace(request, frame=FRAME, skill=catalogue.text(request.run), tools=TOOLS)
    task = AgentTask(
        workspace=workspace,
        setup=setup,
        skill_name=own.name,
        skill=_installed(own).files,
        max_turns=MOST_REQUESTS,
        chooses=True,
        neighbours=tuple(_installed(each) for each in catalogue.skills if each != own),
    )
    return replace(request, frame="", skill="", task=task)


@lru_cache(maxsize=4096)  # The same skills in every run.
def _installed(skill: ListedSkill) -> InstalledSkill:
    """Return a skill to install of which only the name and the description are known.

    Its instructions are like those of no other skill, so that a model's reading them is noticed.
    """
    front = {"name": skill.name, "description": skill.description}
    lines = [f"{key}: {json.dumps(text, ensure_ascii=False)}" for key, text in front.items()]
    body = f"[{skill.name}] Whoever reads this line has chosen the skill."
    text = "\n".join(("---", *lines, "---", "", body, ""))
    return InstalledSkill(name=skill.name, files=(WorkspaceFile(name="SKILL.md", text=text),))


def probe(model: Model, max_tokens: int) -> Request:
    """Return the request that shows whether a model and its server can call tools at all."""
    asked = Request(model=model, frame="", skill="", user=_PROBE, max_tokens=max_tokens, run=0)
    return choosing(asked, catalogue=Catalogue.of([_PROBED]), own=_PROBED)


def calls_tools(completion: Completion) -> bool:
    """Return whether the completion of a probe shows that tools can be called."""
    if completion.agent_run is not None:
        return bool(completion.agent_run.calls)
    return any(call.name == SKILL_TOOL for call in completion.tool_calls)


def next_request(request: Request, completion: Completion) -> Request | None:
    """Return the request that follows a completion, None if the run has ended.

    It ends with the first call of the tool ``skill`` that names one, with a reply that calls no
    tool, after ``MOST_REQUESTS`` requests, and with the first reply to a request without tools. An
    agent makes all requests of a run itself.
    """
    if request.task is not None or not request.tools:
        return None
    calls = completion.tool_calls
    named = any(_skill_of(call) is not None for call in calls)
    if named or not calls or len(request.turns) + 1 >= MOST_REQUESTS:
        return None
    turn = Turn(assistant_blocks=completion.assistant_blocks, results=tuple(map(_result, calls)))
    return replace(request, turns=(*request.turns, turn))


def longest_requests(request: Request) -> list[Request]:
    """Return the most, and the longest, requests that a run can take, for its highest cost.

    Args:
        request: Its first request.
    """
    if request.task is not None:
        return [request]
    turn = _longest_turn(request.max_tokens)
    return [replace(request, turns=(turn,) * turns) for turns in range(MOST_REQUESTS)]


@lru_cache(maxsize=16)  # The same for all requests of a model.
def _longest_turn(max_tokens: int) -> Turn:
    # A token of a bound is a byte: a reply has at most this many tokens, whatever its bytes.
    blocks = ({"type": "text", "text": " " * max_tokens},)
    return Turn(assistant_blocks=blocks, results=(ToolResult(call_id=" " * 100, text=" " * 200),))


def choice_of(completions: Sequence[Completion], names: Collection[str]) -> Choice:
    """Return what a model chose in the requests of a run.

    Args:
        completions: The completion of each request.
        names: Names of the skills in the catalogue.
    """
    calls = [call for completion in completions for call in completion.tool_calls]
    skill_calls = [call for call in calls if call.name == SKILL_TOOL]
    taken = next(filter(None, map(_skill_of, skill_calls)), None)
    looked = len(calls) > len(skill_calls)
    if run := completions[-1].agent_run:
        taken, looked = run.taken or None, bool(run.calls)
    if taken is not None:
        text = f"chose {taken}" if taken in names else f"chose {taken!r}, which is not a skill"
    elif skill_calls:
        text = "called the skill tool without the name of a skill"
    else:
        text = "only looked around" if looked else "chose no skill"
    return Choice(taken=taken, text=text)


def join_completions(completions: Sequence[Completion]) -> Completion:
    """Return the completions of a run as one: tokens, cost and seconds are sums."""
    return replace(
        with_totals(completions),
        reasoning="\n\n".join(filter(None, (each.reasoning for each in completions))),
        tool_calls=tuple(call for each in completions for call in each.tool_calls),
        attempts=sum(each.attempts for each in completions),
        replayed=all(each.replayed for each in completions),
    )


def _skill_of(call: ToolCall) -> str | None:
    """Return the skill that a call names, None if it is another tool's or names none."""
    name = call.arguments.get("name") if call.name == SKILL_TOOL else None
    return name.strip() if isinstance(name, str) and name.strip() else None


def _result(call: ToolCall) -> ToolResult:
    """Return the reply to a call that does not end the run."""
    if call.name in _LOOKED and not call.malformed:
        return ToolResult(call_id=call.id, text=_LOOKED[call.name])
    if call.malformed:
        problem = "Error: the arguments are not a JSON object."
    elif call.name == SKILL_TOOL:
        problem = "Error: the argument 'name' is missing."
    else:
        problem = f"Error: there is no tool {call.name!r}."
    return ToolResult(call_id=call.id, text=problem, failed=True)
