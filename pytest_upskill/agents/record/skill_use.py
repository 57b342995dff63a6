"""Whether an agent was offered a skill, loaded it and read its files, by its exchanges."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence

from pytest_upskill.completion import AgentTask, ToolCall, ToolUse
from pytest_upskill.formats.skill_md.frontmatter import read_skill_text

SKILL_FILE = "SKILL.md"

_DISTINCTIVE_CHARS = 12
"""Least number of characters of a line that is unlikely to occur elsewhere."""
_START = 24
"""Characters of a description that tell it from others."""

_MAX_CALLS = 200
_MAX_NAME = 100
_MAX_INPUT = 2000
"""Maximum characters of a call's arguments in a record."""

_SHARE = 0.5
"""Share of the distinctive lines that shows that a file was read, perhaps only in part."""


def is_offered(task: AgentTask, texts: Sequence[str]) -> bool:
    """Return whether the catalogue in a request names the skill.

    Agents shorten descriptions, so the name next to its beginning, or to its file, is enough.
    """
    text = next((file.text for file in task.skill if file.name == SKILL_FILE), "")
    described = read_skill_text(text, folder=task.skill_name).description
    start = " ".join(described.split())[:_START]
    name = task.skill_name
    return any(
        name in text and (f"{name}/{SKILL_FILE}" in text or start in " ".join(text.split()))
        for text in texts
    )


def is_loaded(task: AgentTask, texts: Iterable[str]) -> bool | None:
    """Return whether the instructions of the skill were in a request, None if it has none.

    Args:
        task: What the agent got.
        texts: What was sent to the model, such as the results of tools.
    """
    body = _instructions(task)
    return _occurs_in(body, texts) if body.strip("- \n") or not task.skill else None


def skill_in_call(call: ToolCall, skills: str) -> str | None:
    """Return the folder of the skill whose instructions a call names as a file, None for none.

    Args:
        call: A call of any tool.
        skills: The folder where skills are installed, below the home folder.
    """
    text = call.malformed or json.dumps(call.arguments, ensure_ascii=False)
    found = re.search(rf"{re.escape(skills)}/([^/\\\s\"']+)/SKILL\.md", text)
    return found[1] if found else None


def files_read(task: AgentTask, texts: Iterable[str]) -> tuple[str, ...]:
    """Return the names of the skill's other files whose text was in a request."""
    texts = tuple(texts)
    return tuple(
        file.name
        for file in task.skill
        if file.name != SKILL_FILE and not file.binary and _occurs_in(file.text, texts)
    )


def is_partly_loaded(task: AgentTask, result: str) -> bool:
    """Return whether the result of a call of the skill contains a line of its instructions.

    An agent that reads the file by itself may read its beginning only.
    """
    return any(line in result for line in _distinctive_lines(_instructions(task)))


def recorded_calls(calls: Sequence[ToolCall]) -> tuple[ToolUse, ...]:
    """Return the calls of a run, each and all cut to what a record can hold."""
    return tuple(
        ToolUse(
            name=call.name[:_MAX_NAME],
            input=(call.malformed or json.dumps(call.arguments, ensure_ascii=False))[:_MAX_INPUT],
        )
        for call in calls[:_MAX_CALLS]
    )


def broken_reason(task: AgentTask, *, offered: bool | None, denied: bool) -> str:
    """Return why a run measures nothing because of how the skill was installed, "" if it does.

    Args:
        task: What the agent got.
        offered: Whether the skill was in the catalogue; None if that is unknown.
        denied: Whether the model asked for it by name, and did not get the instructions.
    """
    if not task.skill:
        return "the agent was offered the skill, which is not installed" if offered else ""
    if offered is False:
        return "the skill is installed, but the agent was not offered it"
    if denied:
        return "the model called the skill, but its instructions never reached it"
    return ""


def _instructions(task: AgentTask) -> str:
    """Return the text of the skill without the frontmatter, which the catalogue quotes."""
    body = next((file.text for file in task.skill if file.name == SKILL_FILE), "")
    front, mark, rest = body.partition("\n---")
    return rest if mark and front.startswith("---") else body


def _occurs_in(part: str, texts: Iterable[str]) -> bool:
    """Return whether most of the distinctive lines of a file occur together in the texts.

    An agent may read a long file in several parts.
    """
    lines, texts = [*_distinctive_lines(part)] or [part.strip()], tuple(texts)
    there = sum(any(line in text for text in texts) for line in lines)
    return bool(lines[0]) and there > _SHARE * len(lines)


def _distinctive_lines(text: str) -> Iterator[str]:
    lines = (line.strip() for line in text.splitlines())
    yield from dict.fromkeys(line for line in lines if len(line) >= _DISTINCTIVE_CHARS)
