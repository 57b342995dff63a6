"""Whether an agent was offered a skill, loaded it, and read its files.

All of it is found in the requests to the model: an agent's own account may be wrong.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from pytest_upskill.cases.skill_text import read_skill_text
from pytest_upskill.models import AgentTask, ToolCall, ToolUse

SKILL_FILE = "SKILL.md"

_DISTINCTIVE_CHARS = 12
"""Minimum length of a line that is unlikely to occur elsewhere."""
_DESCRIPTION_START_CHARS = 24
"""Length of the beginning of a description that tells it from others."""

_MAX_CALLS = 200
_MAX_NAME_CHARS = 100
_MAX_INPUT_CHARS = 2000
"""Maximum length of a call's arguments in a record."""

_READ_SHARE = 0.5
"""A file counts as read if more than this share of its distinctive lines was."""


def is_offered(task: AgentTask, texts: Sequence[str]) -> bool:
    """Return whether the catalogue in a request names the skill.

    Agents shorten descriptions, so the name next to its beginning, or to its file, is enough.
    """
    text = next((file.text for file in task.skill if file.name == SKILL_FILE), "")
    description = read_skill_text(text, folder=task.skill_name).description
    start = " ".join(description.split())[:_DESCRIPTION_START_CHARS]
    name = task.skill_name
    return any(
        name in text and (f"{name}/{SKILL_FILE}" in text or start in " ".join(text.split()))
        for text in texts
    )


def is_loaded(task: AgentTask, texts: Iterable[str]) -> bool | None:
    """Return whether the skill's instructions were in a request; None if the skill has none.

    Args:
        task: What the agent got.
        texts: Texts that were sent to the model, such as the results of tools.
    """
    body = _instructions(task)
    if task.skill and not body.strip("- \n"):
        return None
    return _occurs_in(body, texts)


def skill_in_call(call: ToolCall, skills: str) -> str:
    """Return the folder of the skill whose SKILL.md a call names, "" for none.

    Args:
        call: A call of any tool.
        skills: The folder where skills are installed, below the home folder.
    """
    text = call.malformed or json.dumps(call.arguments, ensure_ascii=False)
    match = re.search(rf"{re.escape(skills)}/([^/\\\s\"']+)/SKILL\.md", text)
    return match[1] if match else ""


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
    """Return the first calls of a run, with arguments as long as a record can hold."""
    return tuple(
        ToolUse(
            name=call.name[:_MAX_NAME_CHARS],
            input=(call.malformed or json.dumps(call.arguments, ensure_ascii=False))[
                :_MAX_INPUT_CHARS
            ],
        )
        for call in calls[:_MAX_CALLS]
    )


def broken_reason(task: AgentTask, *, offered: bool | None, denied: bool) -> str:
    """Return why the installation of the skill makes a run useless, "" if it does not.

    Args:
        task: What the agent got.
        offered: Whether the skill was in the catalogue; None if that is unknown.
        denied: Whether the model asked for the skill, and did not get its instructions.
    """
    if not task.skill:
        return "the agent was offered the skill, which is not installed" if offered else ""
    if offered is False:
        return "the skill is installed, but the agent was not offered it"
    if denied:
        return "the model called the skill, but its instructions never reached it"
    return ""


def _instructions(task: AgentTask) -> str:
    """Return the text of SKILL.md without the frontmatter, which the catalogue quotes."""
    text = next((file.text for file in task.skill if file.name == SKILL_FILE), "")
    frontmatter, mark, body = text.partition("\n---")
    return body if mark and frontmatter.startswith("---") else text


def _occurs_in(content: str, texts: Iterable[str]) -> bool:
    """Return whether most of the distinctive lines of a file occur together in the texts.

    An agent may read a long file in several parts.
    """
    lines = [*_distinctive_lines(content)] or [content.strip()]
    if not lines[0]:
        return False
    texts = tuple(texts)
    occurring = sum(any(line in text for text in texts) for line in lines)
    return occurring > _READ_SHARE * len(lines)


def _distinctive_lines(text: str) -> Iterator[str]:
    """Yield each line once that is long enough to be unlikely elsewhere."""
    lines = (line.strip() for line in text.splitlines())
    yield from dict.fromkeys(line for line in lines if len(line) >= _DISTINCTIVE_CHARS)


def texts_in(value: object) -> Iterator[str]:
    """Yield every text in a JSON value, however deep, except names of fields."""
    return (part for part in _parts(value) if isinstance(part, str))


def results_in(value: object) -> Iterator[tuple[str, str]]:
    """Yield pairs of the id of a call and its result, a result from the texts in it."""
    for part in _parts(value):
        if isinstance(part, Mapping) and "arguments" not in part:
            call_id = part.get("tool_use_id") or part.get("call_id")
            if call_id:
                result = part.get("output") or part.get("content")
                yield str(call_id), "\n".join(texts_in(result))


def _parts(value: object) -> Iterator[object]:
    """Yield a JSON value and all values in it, in their order."""
    pending = [value]
    while pending:
        part = pending.pop()
        yield part
        if isinstance(part, Mapping):
            pending += reversed([*part.values()])
        elif isinstance(part, list):
            pending += reversed(part)
