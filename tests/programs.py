"""A program on PATH that behaves as Claude Code does, and a server that tells it what to do."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from pytest_upskill.agents.self_test import message_events
from tests.loopback import Loopback, Received, Reply

Step = str | tuple[str, Mapping[str, Any]]
"""The text of a last reply, or a call of a tool."""

Steps = Sequence[Step] | Callable[[Received], Step]


def bash(command: str) -> Step:
    return "Bash", {"command": command}


def skill(name: str = "billing") -> Step:
    return "Skill", {"skill": name}


def follow(loopback: Loopback, steps: Steps) -> None:
    """Make the server reply to each conversation with the steps, in their order."""

    def answer(received: Received) -> Reply:
        if callable(steps):
            return _reply(received, steps(received))
        done = calls_so_far(received)
        return _reply(received, steps[done] if done < len(steps) else "Done.")

    loopback.answer = answer


def calls_so_far(received: Received) -> int:
    said = [turn["content"] for turn in received.body["messages"] if turn["role"] == "assistant"]
    blocks = (block for content in said if isinstance(content, list) for block in content)
    return sum(block["type"] == "tool_use" for block in blocks)


def results(received: Received) -> str:
    """Return all that tools returned so far."""
    return json.dumps([turn for turn in received.body["messages"] if turn["role"] == "user"])


def _reply(received: Received, step: Step) -> Reply:
    call = None if isinstance(step, str) else {"name": step[0], "input": dict(step[1])}
    text = step if isinstance(step, str) else ""
    events = message_events(str(received.body["model"]), call, text)
    body = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)
    return Reply(body=body, content_type="text/event-stream")


@pytest.fixture
def claude(loopback: Loopback, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Put the program on PATH; return how its model on the loopback server is chosen."""
    folder = tmp_path / "bin"
    folder.mkdir()
    shutil.copy(Path(__file__).with_name("fake_claude.py"), folder / "claude")
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("UPSKILL_API_KEY", KEY)
    return f"claude-code:haiku@{loopback.url}"


KEY = "the-real-key-0123456789"
