"""Programs of agents as processes: how they start and end, and what stays open."""

from __future__ import annotations

import asyncio
import errno
import json
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
import pytest

from pytest_upskill.agents.programs import ClaudeCode, GeminiCli
from pytest_upskill.agents.proxy import Proxy, _json_object
from pytest_upskill.agents.request_filter import RefusedBody
from pytest_upskill.agents.self_test import play_script
from pytest_upskill.agents.upstream import Upstream
from pytest_upskill.answers.budget import Budget, BudgetError, Reservation, Settle
from pytest_upskill.answers.prices import Prices
from pytest_upskill.checks.files import WorkspaceFile
from pytest_upskill.models import Completion, ProviderError, RunLimits
from tests.agent_programs import (
    Recorded,
    agent_request,
    bash,
    client,
    completed,
    needs_bubblewrap,
    run_of,
    scripted_host,
)
from tests.sandbox_programs import is_gone, wait_for

pytestmark = [pytest.mark.slow, needs_bubblewrap]


def test_a_program_with_too_many_processes_ends_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pytest_upskill.agents.program_sandbox._MAX_THREADS", 50)

    completion = completed(bash("for i in $(seq 60); do sleep 9 & done; wait"), "Done.")

    assert run_of(completion).limit == "it started more than 50 processes and threads"


def test_a_program_that_ends_before_its_model_has_answered_is_missing_data() -> None:
    upstream = Recorded([bash("echo gone >&2; kill -9 $PPID")])

    with pytest.raises(ProviderError, match="claude-code: ended before its model had") as caught:
        asyncio.run(client(upstream).complete(agent_request()))

    assert caught.value.paid is not None
    assert caught.value.paid.cost_usd == pytest.approx(0.05)


def test_a_program_that_does_not_work_fails_its_self_test_before_anything_is_asked(
    tmp_path: Path,
) -> None:
    program, upstream = tmp_path / "claude", Recorded([])
    program.write_text("#!/bin/sh\necho unknown option >&2; exit 2\n", "utf-8")
    program.chmod(0o755)
    agent = client(upstream, program=program)

    with pytest.raises(ProviderError) as caught:
        asyncio.run(agent.complete(agent_request()))

    assert str(caught.value) == (
        "claude-code 9.9.9 fails its self-test: sent no request: unknown option: install another "
        "version, such as 2.1.330"
    )
    assert (upstream.bodies, caught.value.fatal) == ([], True)


def open_files() -> int:
    return len([*Path("/proc/self/fd").iterdir()])


def test_a_program_that_could_not_be_started_is_missing_data_and_started_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    start, failures = asyncio.create_subprocess_exec, [BlockingIOError(errno.EAGAIN, "busy")]

    async def at_the_second_time(*given: Any, **more: Any) -> Any:
        if failures:
            raise failures.pop()
        return await start(*given, **more)

    async def twice() -> Completion:
        agent = client(Recorded(["Done."]))
        before = open_files()
        with pytest.raises(ProviderError, match="cannot run the agent: busy"):
            await agent.complete(agent_request())
        assert open_files() == before
        return await agent.complete(agent_request())

    monkeypatch.setattr(asyncio, "create_subprocess_exec", at_the_second_time)

    assert asyncio.run(twice()).text == "Done."


ENDLESS = """
import asyncio
from tests.agent_programs import bash, completed
completed(bash("setsid sleep {seconds} & sleep {seconds}"))
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_nothing_outlives_a_killed_session(number: signal.Signals, marker: str) -> None:
    session = subprocess.Popen([sys.executable, "-c", ENDLESS.format(seconds=marker)])
    wait_for(marker, 2)

    session.send_signal(number)
    session.wait()

    assert is_gone(marker)


async def reserve_nothing(_: int) -> Settle:
    raise AssertionError("no connection sends a request")


def test_an_agent_holds_no_more_connections_than_it_may(tmp_path: Path) -> None:
    async def opened() -> list[bytes | None]:
        proxy = Proxy(agent_request(), ClaudeCode(), Recorded([]), reserve_nothing, RunLimits())
        await proxy.start(tmp_path / "proxy")
        ends = [await asyncio.open_unix_connection(tmp_path / "proxy") for _ in range(66)]
        seen = [await _first_byte(reader) for reader, _ in ends]
        await proxy.aclose()
        for _, writer in ends:
            writer.close()
        return seen

    assert asyncio.run(opened()) == [None] * 64 + [b""] * 2


async def _first_byte(reader: asyncio.StreamReader) -> bytes | None:
    """Return what comes, b"" at the end, None for nothing."""
    try:
        return await asyncio.wait_for(reader.read(1), 0.01)
    except TimeoutError:
        return None


def test_no_request_stops_the_event_loop(tmp_path: Path) -> None:
    skill = "\n".join(f"This is line {number} of a long skill." for number in range(200))
    file = WorkspaceFile(name="SKILL.md", text=f"---\nname: a\ndescription: b\n---\n{skill}")
    call = {"type": "tool_use", "id": "t", "name": "Bash", "input": {"x": ["x"] * 200_000}}
    said = [{"role": "assistant", "content": [call]}]
    body = json.dumps({"messages": said, "stream": True, "tools": [{"name": "Bash"}]})

    async def longest_stop() -> float:
        async def fail(_: int) -> Settle:
            raise BudgetError("the request has been read")

        request = agent_request(skill_name="a", skill=(file,))
        proxy = Proxy(request, ClaudeCode(), Recorded([]), fail, RunLimits())
        await proxy.start(tmp_path / "proxy")
        reader, writer = await asyncio.open_unix_connection(tmp_path / "proxy")
        head = f"POST /v1/messages HTTP/1.1\r\nhost: x\r\ncontent-length: {len(body)}\r\n\r\n"
        writer.write((head + body).encode())
        answer, longest = asyncio.ensure_future(reader.read(1)), 0.0
        while not answer.done():
            before = time.monotonic()
            await asyncio.sleep(0.01)
            longest = max(longest, time.monotonic() - before)
        writer.close()
        await proxy.aclose()
        assert proxy.exchanges.run("1", "").loaded is False
        return longest

    assert asyncio.run(longest_stop()) < 2


def test_a_request_of_millions_of_lists_is_not_read() -> None:
    with pytest.raises(RefusedBody, match="more than 1,000,000 lists and objects"):
        _json_object(b"[" + b"[]," * 1_000_000 + b"[]]")


def _reply_without_end(_: httpx2.Request) -> httpx2.Response:
    """Reply with more than connections hold."""
    return httpx2.Response(200, headers={"content-type": "text/event-stream"}, content=_words())


async def _words() -> AsyncIterator[bytes]:
    started = {"id": "a", "role": "assistant", "usage": {"input_tokens": 1, "output_tokens": 1}}
    yield _event(type="message_start", message=started)
    yield _event(type="content_block_start", index=0, content_block={"type": "text", "text": ""})
    for _ in range(200):
        delta = {"type": "text_delta", "text": "word" * 5_000}
        yield _event(type="content_block_delta", index=0, delta=delta)


def _event(**data: Any) -> bytes:
    return b"data: " + json.dumps(data).encode() + b"\n\n"


def test_an_agent_that_takes_no_more_of_a_reply_does_not_stop_the_clock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pytest_upskill.agents.proxy._SEND_S", 0.1)

    paid = asyncio.Event()

    async def reserve(_: int) -> Settle:
        async def settle(*_: object) -> float:
            paid.set()
            return 0.25

        return settle

    async def hang() -> float | None:
        upstream = Upstream(**scripted_host(_reply_without_end), wire="messages")
        proxy = Proxy(agent_request(), ClaudeCode(), upstream, reserve, RunLimits())
        await proxy.start(tmp_path / "proxy")
        reader, writer = await asyncio.open_unix_connection(tmp_path / "proxy", limit=1024)
        body = json.dumps({"messages": [{"role": "user", "content": "x"}], "stream": True})
        head = f"POST /v1/messages HTTP/1.1\r\nhost: x\r\ncontent-length: {len(body)}\r\n\r\n"
        writer.write((head + body).encode())
        reader._transport.pause_reading()  # type: ignore[attr-defined]  # as a program that hangs
        await asyncio.wait_for(paid.wait(), 20)
        await proxy.finish()
        writer.close()
        await proxy.aclose()
        return proxy.exchanges.completion().cost_usd

    assert asyncio.run(hang()) == 0.25


@pytest.mark.parametrize(
    ("events", "error"),
    [
        ([{"type": "content_block_delta", "index": 5, "delta": {}}], "malformed reply (KeyError)"),
        (
            [{"type": "error", "error": {"type": "overloaded_error", "message": "Too busy"}}],
            "Too busy",
        ),
    ],
)
def test_a_reply_that_is_none_is_missing_data_and_not_requested_again(
    events: list[dict[str, Any]], error: str
) -> None:
    asked: list[httpx2.Request] = []

    def reply(request: httpx2.Request) -> httpx2.Response:
        asked.append(request)
        return httpx2.Response(200, text="".join(_event(**event).decode() for event in events))

    upstream = Upstream(**scripted_host(reply), wire="messages")

    with pytest.raises(ProviderError) as caught:
        asyncio.run(client(upstream).complete(agent_request()))

    assert error in str(caught.value)
    assert len(asked) == 1


@pytest.mark.parametrize("verb", ["generateContent", "streamGenerateContent", "countTokens"])
def test_the_model_of_gemini_is_pinned_although_the_agent_writes_it_in_the_url(
    verb: str, tmp_path: Path
) -> None:
    asked: list[str] = []
    reply = play_script("generateContent", [], "Done.")

    def record(request: httpx2.Request) -> httpx2.Response:
        asked.append(f"{request.url.path}?{request.url.query.decode()}")
        return reply(httpx2.Request("POST", "http://script/:streamGenerateContent", content=b"{}"))

    async def post() -> bytes:
        upstream = Upstream(**scripted_host(record), wire="generateContent")
        budget = Budget(None, Prices({}))
        reserve = partial(budget.reserve_next, Reservation(agent_request(), None))
        proxy = Proxy(agent_request(), GeminiCli(), upstream, reserve, RunLimits())
        await proxy.start(tmp_path / "proxy")
        reader, writer = await asyncio.open_unix_connection(tmp_path / "proxy")
        path = f"/v1beta/models/gemini-ultra:{verb}?alt=sse"
        writer.write(f"POST {path} HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n{{}}".encode())
        status = await reader.readline()
        await proxy.finish()
        writer.close()
        await proxy.aclose()
        return status

    status = asyncio.run(post())

    model = agent_request().model.name
    query = "alt=sse" if verb.startswith("stream") else ""
    expected = [f"/v1beta/models/{model}:{verb}?{query}"] if verb != "countTokens" else []
    assert asked == expected
    assert (b" 200 " in status) == bool(expected)
