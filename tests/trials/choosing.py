"""Answers of models that choose a skill, and the queries that they answer."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.loopback import Received, Reply

CALL = {"id": "t1", "type": "function"}


def calling(name: str, arguments: object) -> Reply:
    """Reply with a tool call, in the words of chat completions."""
    written = arguments if isinstance(arguments, str) else json.dumps(arguments)
    function = {"name": name, "arguments": written}
    return Reply(message={"content": None, "tool_calls": [{**CALL, "function": function}]})


def took(name: str) -> Reply:
    """Reply that a skill is taken."""
    return calling("skill", {"name": name})


def choosing(choices: dict[str, Reply | str]) -> Any:
    """Answer the probe as told, and each query with its choice."""

    def answer(received: Received) -> Reply | str:
        query = received.body["messages"][1]["content"]
        if query.startswith("Load the skill greeting"):
            return took("greeting")
        return choices.get(query, "I just answer.")

    return answer


def choosing_by(choose: Callable[[Received], Reply | str]) -> Callable[[Received], Reply | str]:
    """Answer the probe, and each query as ``choose`` decides from its request."""

    def answer(received: Received) -> Reply | str:
        return took("greeting") if "<name>greeting</name>" in received.system else choose(received)

    return answer


def figures() -> Any:
    """Read the report that a run wrote to ``r.json``."""
    return json.loads(Path("r.json").read_text("utf-8"))


def queries(should: int, should_not: int) -> list[dict[str, Any]]:
    """Make so many queries that should trigger the skill, and so many that should not."""
    return [
        {"id": f"q{number}", "input": f"Query {number}.", "should_trigger": number < should}
        for number in range(should + should_not)
    ]
