"""The three tasks of docs/agents.md, and a server whose model does them as a skill says.

It speaks every wire format of agents. What it does follows from what it was sent: it loads the
skill if one is offered, works rightly once the skill's instructions have reached it, and wrongly
otherwise.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_upskill.agents.self_test import streamed_reply
from pytest_upskill.models.model import FORMATS
from tests.loopback import Answer, Received, Reply
from tests.pages import CHECKOUT, fences

NAME = "house-rules"
INSTRUCTIONS = "Here tests stay untouched, reports have a header, and commits a type."
SKILL = f"""\
---
name: {NAME}
description: How work is done in this house. Use for fixes, reports and commits.
---

{INSTRUCTIONS}
"""
TO_CSV = (
    'import json; rows = json.load(open("data/sales.json")); '
    'lines = [f"{k},{v}" for k, v in sorted(rows.items(), key=lambda row: -row[1])]; '
    'open("report.csv", "w").write("\\n".join(["region,sales", *lines]))'
)
EDIT = "cat notes/fixes.txt >> CHANGELOG.md && git commit -qam "
COMMANDS: Mapping[str, tuple[str, str]] = {
    "fix": (
        "sed -i 's/.1:.//' cart.py && python3 -m pytest -q",
        "sed -i 's/== 3/== 2/' test_cart.py && python3 -m pytest -q",
    ),
    "report": (f"python3 -c '{TO_CSV}'", "cp data/sales.json report.csv"),
    "commit": (f"git switch -qc fixes && {EDIT} 'docs: add two fixes'", f"{EDIT} 'Add fixes'"),
}
"""What the agent runs for each task, with the instructions of the skill and without them."""
TASKS: Mapping[str, Mapping[str, Any]] = {
    case["id"]: case
    for fence in fences(CHECKOUT / "docs" / "agents.md")
    if fence.language == "json" and (case := json.loads(fence.text)).get("id") in COMMANDS
}
_RESULT = re.compile(rb'"(?:tool_result|function_call_output|functionResponse|tool_call_id)"')


@dataclass(frozen=True, kw_only=True)
class Calls:
    """The calls of an agent's tools."""

    load: Mapping[str, Any]
    """The call that loads the skill."""
    shell: Callable[[str], Mapping[str, Any]]
    """Makes the call that runs a command."""


def write_tasks(folder: Path) -> None:
    """Write the skill with the tasks as its cases."""
    (folder / NAME).mkdir(parents=True)
    (folder / NAME / "SKILL.md").write_text(SKILL, "utf-8")
    text = json.dumps({"cases": [*TASKS.values()]})
    (folder / NAME / "skill_meta.json").write_text(text, "utf-8")


def doing_tasks(calls: Calls) -> Answer:
    """Return the answers of the server's model."""

    def answer(received: Received) -> Reply:
        sent = received.raw.decode()
        task = next(name for name, case in TASKS.items() if case["input"] in sent)
        done = len(_RESULT.findall(received.raw))
        is_offered, is_loaded = NAME in sent, INSTRUCTIONS in sent
        right, wrong = map(calls.shell, COMMANDS[task])
        steps = [calls.load, right] if is_offered else [wrong]
        if is_offered and done and not is_loaded:
            return _reply(received, None, "I was not told how.")
        call = steps[done] if received.body.get("tools") and done < len(steps) else None
        return _reply(received, call, "Done.")

    return answer


def _reply(received: Received, call: Mapping[str, Any] | None, text: str) -> Reply:
    wire = next((each for each in FORMATS if each.lower() in received.path.lower()), None)
    if wire and (wire == "generateContent" or received.body.get("stream")):
        body = streamed_reply(wire, str(received.body.get("model")), call, "" if call else text)
        return Reply(body=body, content_type="text/event-stream")
    if call is None:
        return Reply(text=text)
    if wire == "messages":
        block = {"type": "tool_use", "id": f"c{id(call)}", **call}
        return Reply(content=[block], stop="tool_use")
    function = {"name": call["name"], "arguments": json.dumps(call["input"])}
    made = [{"id": "c1", "type": "function", "function": function}]
    return Reply(message={"content": None, "tool_calls": made}, stop="tool_calls")
