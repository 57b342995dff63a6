"""Models that work as an agent's script says: in this process, and behind a loopback server."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from pytest_upskill.models import Completion, Request, ToolCall
from tests.loopback import Answer, Received, Reply

Step = str | ToolCall | tuple[ToolCall, ...] | Exception
"""A reply: an answer, or calls of tools; or what is raised instead of one."""


def call(tool: str, /, **arguments: Any) -> ToolCall:
    return ToolCall(name=tool, id="c1", arguments=arguments)


SKILL = """\
---
name: sums
description: How totals are computed here.
---
Run `python3 scripts/total.py NUMBERS...` and write what it says to total.txt.
"""
"""A skill whose instructions are to run the script that computes a total."""
TOTAL = "import sys\nprint('TOTAL', sum(map(int, sys.argv[1:])))  # of all arguments\n"
LOAD = call("skill", name="sums")
COMPUTE = call(
    "bash", command="python3 ~/.agents/skills/sums/scripts/total.py $(cat data/in.txt) > total.txt"
)


class ScriptedClient:
    """A client whose model takes one step per request; the last one again and again."""

    def __init__(self, *steps: Step, tokens: int | None = 10) -> None:
        self._steps = steps
        self._tokens = tokens
        self.requests: list[Request] = []

    async def complete(self, request: Request) -> Completion:
        step = self._steps[min(len(self.requests), len(self._steps) - 1)]
        self.requests.append(request)
        if isinstance(step, Exception):
            raise step
        calls = () if isinstance(step, str) else step if isinstance(step, tuple) else (step,)
        return Completion(
            text=step if isinstance(step, str) else "",
            tool_calls=calls,
            assistant_blocks=({"step": len(self.requests)},),
            input_tokens=self._tokens,
            output_tokens=1,
            cost_usd=0.25,
        )

    async def aclose(self) -> None: ...


def following(with_skill: Sequence[Step], without: Sequence[Step]) -> Answer:
    """Return the answers of a server to an agent, by whether it is offered a skill."""

    def answer(received: Received) -> Reply:
        steps = with_skill if "<available_skills>" in received.system else without
        done = sum(message["role"] == "assistant" for message in received.body["messages"])
        step = steps[min(done, len(steps) - 1)]
        if isinstance(step, str):
            return Reply(text=step)
        assert isinstance(step, ToolCall)
        if received.path.endswith("/messages"):
            block = {"type": "tool_use", "id": "c1", "name": step.name, "input": step.arguments}
            return Reply(content=[block], stop="tool_use")
        function = {"name": step.name, "arguments": json.dumps(step.arguments)}
        calls = [{"id": "c1", "type": "function", "function": function}]
        return Reply(message={"content": None, "tool_calls": calls}, stop="tool_calls")

    return answer
