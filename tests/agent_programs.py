"""A program on PATH that behaves as Claude Code does, and a server that tells it what to do."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import httpx2
import pytest

from pytest_upskill.agents.program_client import CliClient
from pytest_upskill.agents.programs import ClaudeCode, Installed
from pytest_upskill.agents.self_test import play_script, streamed_reply
from pytest_upskill.agents.upstream import Script, Upstream
from pytest_upskill.answers.budget import Budget
from pytest_upskill.answers.prices import OwnPrice, Prices
from pytest_upskill.answers.progress import InFlight
from pytest_upskill.answers.retry import Pace, Retries
from pytest_upskill.models import AgentRun, AgentTask, Completion, Request, RunLimits, parse_model
from pytest_upskill.models.keys import Endpoint
from pytest_upskill.models.streams import AgentFormat
from pytest_upskill.project.redaction import Redactor
from pytest_upskill.sandbox.run import Sandbox
from tests.loopback import Loopback, Received, Reply
from tests.sandbox_programs import LEVELS

needs_bubblewrap = pytest.mark.skipif(
    "bwrap" not in LEVELS, reason="bubblewrap is missing or does not work on this machine"
)

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
    if not received.body.get("stream"):  # the built-in agent
        block = {"type": "tool_use", "id": "c1", **call} if call else {"type": "text", "text": text}
        return Reply(content=[block], stop="tool_use" if call else "end")
    body = streamed_reply("messages", str(received.body["model"]), call, text)
    return Reply(body=body, content_type="text/event-stream")


@pytest.fixture
def claude(loopback: Loopback, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Install the program on PATH; return how its model on the loopback server is chosen."""
    folder = tmp_path / "bin"
    folder.mkdir()
    shutil.copy(Path(__file__).with_name("fake_claude.py"), folder / "claude")
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("UPSKILL_API_KEY", KEY)
    return f"claude-code:haiku@{loopback.url}"


KEY = "the-real-key-0123456789"


class Recorded(Upstream):
    """An upstream whose model does these steps, and that keeps the requests that reach it."""

    def __init__(self, steps: Sequence[Step], wire: AgentFormat = "messages") -> None:
        calls = [step for step in steps if not isinstance(step, str)]
        texts = [step for step in steps if isinstance(step, str)]
        made = [{"name": name, "input": dict(given)} for name, given in calls]
        reply = play_script(wire, made, texts[-1] if texts else "Done.")
        self.bodies: list[Mapping[str, Any]] = []

        def record(request: httpx2.Request) -> httpx2.Response:
            self.bodies.append(json.loads(request.content))
            return reply(request)

        super().__init__(**scripted_host(record), wire=wire)

    @property
    def tool_results(self) -> str:
        """All that tools returned."""
        return json.dumps(self.bodies[-1]["messages"])


def scripted_host(script: Script) -> dict[str, Any]:
    """Return the arguments of an upstream whose requests a script answers."""
    return {
        "endpoint": Endpoint(
            wire="anthropic", url="http://script", key_variable="", key="", redactor=Redactor([])
        ),
        "timeout": 60.0,
        "retries": Retries(pace=Pace(9), host="script", activity=InFlight()),
        "script": script,
    }


def client(
    upstream: Upstream,
    *,
    limit: float | None = None,
    limits: RunLimits | None = None,
    program: Path | None = None,
) -> CliClient:
    """Make a client of a program, that in this folder by default; a request costs $.05."""
    program = program or Path(__file__).with_name("fake_claude.py")
    prices = Prices({"m": OwnPrice(input=0.0, output=50_000.0, cached=0.0)})
    return CliClient(
        cli=ClaudeCode(),
        installed=Installed(program=program, folder=program, version="9.9.9"),
        upstream=upstream,
        budget=Budget(limit, prices),
        slots=asyncio.Semaphore(4),
        sandbox=Sandbox("bwrap"),
        limits=limits or RunLimits(),
    )


def agent_request(**task: Any) -> Request:
    model = parse_model("m=claude-code:haiku")
    return Request(
        model=model, frame="", skill="", user="Go.", max_tokens=1, run=0, task=AgentTask(**task)
    )


def completed(*steps: Step, limits: RunLimits | None = None, **task: Any) -> Completion:
    """Run the program with a model that does these steps."""
    return asyncio.run(client(Recorded(steps), limits=limits).complete(agent_request(**task)))


def run_of(completion: Completion) -> AgentRun:
    assert completion.agent_run is not None
    return completion.agent_run
