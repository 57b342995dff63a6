"""Trials in which a model chooses among skills."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Run, WriteSkill
from tests.loopback import Loopback, Received, Reply

CALL = {"id": "t1", "type": "function"}


def calling(name: str, arguments: object) -> Reply:
    """Reply with a tool call, in the words of chat completions."""
    written = arguments if isinstance(arguments, str) else json.dumps(arguments)
    function = {"name": name, "arguments": written}
    return Reply(message={"content": None, "tool_calls": [{**CALL, "function": function}]})


def took(name: str) -> Reply:
    return calling("skill", {"name": name})


def choosing(choices: dict[str, Reply | str]) -> Any:
    """Answer the probe as told, and each query with its choice."""

    def answer(received: Received) -> Reply | str:
        query = received.body["messages"][1]["content"]
        if query.startswith("Load the skill greeting"):
            return took("greeting")
        return choices.get(query, "I just answer.")

    return answer


@pytest.fixture
def skills(write_skill: WriteSkill) -> Path:
    """Two skills, the first with queries."""
    folder = write_skill(
        {"id": "bill", "input": "Bill Ada.", "should_trigger": True},
        {"id": "sing", "input": "Sing.", "should_trigger": False},
    )
    other = folder.parent / "parcels"
    other.mkdir()
    (other / "SKILL.md").write_text(
        "---\nname: parcels\ndescription: Send <parcels>.\n---\n\nSend.\n", "utf-8"
    )
    return folder.parent


@pytest.mark.usefixtures("skills")
def test_a_query_passes_if_the_right_choice_is_made(run: Run, loopback: Loopback) -> None:
    loopback.answer = choosing({"Bill Ada.": took("billing")})

    result = run("-v", "--upskill-models", f"m=openai:small@{loopback.openai_url}", "skills")

    result.stdout.fnmatch_lines(
        ["*::bill?m-trigger?*", "*::sing?m-trigger?*", "*::trigger-gate?m? PASSED*"]
    )
    result.assert_outcomes(passed=3)
