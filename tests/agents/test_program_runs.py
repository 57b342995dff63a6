"""One run of a program in the sandbox: what it sees, what is read of it, and what ends it."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar

import pytest

from pytest_upskill.agents.claude_code import ClaudeCode
from pytest_upskill.agents.proxy import Proxy
from pytest_upskill.agents.upstream import Reply
from pytest_upskill.checks.files import WorkspaceFile
from pytest_upskill.completion import Completion, ProviderError, Request
from pytest_upskill.spending.budget import BudgetError
from pytest_upskill.spending.caps import Caps
from pytest_upskill.spending.run_budget import Settle
from tests.agent_programs import (
    Recorded,
    asked,
    bash,
    client,
    completed,
    needs_bubblewrap,
    run_of,
    skill,
)

pytestmark = needs_bubblewrap

SKILL = (
    WorkspaceFile(
        name="SKILL.md",
        text="---\nname: billing\ndescription: How we bill.\n---\n\nWe send invoices on Mondays.\n",
    ),
    WorkspaceFile(name="references/days.md", text="Monday is the day of the invoices.\n"),
)


def test_nothing_of_the_host_is_inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-the-real-key-0123456789")
    (tmp_path / "secret").write_text("a secret of the host", "utf-8")
    with socket.create_server(("127.0.0.1", 0)) as host:
        port = host.getsockname()[1]
        files = f"{tmp_path}/secret /etc/passwd /proc/*/environ"
        look = f"touch /new /dev/new; env; id; ls -A / /home /tmp; cat {files}"
        dial = "import socket,sys; socket.create_connection((sys.argv[1], int(sys.argv[2])), 2)"
        upstream = Recorded(
            [
                bash(look),
                *(bash(f"python3 -c '{dial}' {at}") for at in (f"127.0.0.1 {port}", "1.1.1.1 53")),
            ]
        )

        asyncio.run(client(upstream).complete(asked()))

    assert "ANTHROPIC_BASE_URL=http://127.0.0.1:8787" in upstream.told
    assert "uid=1000" in upstream.told
    for hidden in ("the-real-key", "a secret of the host", "root:", str(Path.home().name) + ":x"):
        assert hidden not in upstream.told
    # What is in memory has no limit: nothing can be written there.
    for name in ("/new", "/dev/new"):
        assert f"cannot touch '{name}'" in upstream.told
    assert "Connection refused" in upstream.told
    assert "Network is unreachable" in upstream.told


def test_what_an_agent_did_is_read_from_its_requests() -> None:
    read = bash("cat ~/.claude/skills/billing/references/days.md; echo 1 > out.txt; rm in.txt")
    start = (WorkspaceFile(name="in.txt", text="x"), WorkspaceFile(name="kept.txt", text="y"))

    completion = completed(
        skill(), read, "Sent.", skill_name="billing", skill=SKILL, workspace=start
    )

    run = run_of(completion)
    assert (run.offered, run.called, run.loaded, run.broken) == (True, True, True, "")
    assert run.read == ("references/days.md",)
    assert [call.name for call in run.calls] == ["Skill", "Bash"]
    assert [(file.name, file.text) for file in run.changed] == [("out.txt", "1\n")]
    assert run.deleted == ("in.txt",)
    assert (run.turns, run.requests, run.version) == (3, 3, "9.9.9")
    assert (completion.text, completion.input_tokens, completion.output_tokens) == ("Sent.", 3, 3)
    assert completion.cost_usd == pytest.approx(0.15)


def test_links_pipes_and_files_with_odd_names_are_not_recorded(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("a secret of the host", "utf-8")
    command = (
        f"ln -s {tmp_path}/secret link; ln -s {tmp_path} folder; mkfifo pipe; echo 1 > good.txt; "
        "ln good.txt hard.txt; echo 2 > $'a\\nb'; ln -s /etc/passwd passwd"
    )

    run = run_of(completed(bash(command)))

    assert {file.name: file.text for file in run.changed} == {"good.txt": "1\n", "hard.txt": "1\n"}


def test_a_program_that_leaves_too_large_a_workspace_to_record_has_failed() -> None:
    run = run_of(completed(bash("mkdir d; cd d; seq 3000 | xargs touch")))

    assert (run.limit, run.changed) == ("it left more than 2,000 files in the workspace", ())


def test_a_program_with_too_many_processes_ends_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pytest_upskill.agents.boxed_process._MOST_THREADS", 50)

    completion = completed(bash("for i in $(seq 60); do sleep 9 & done; wait"), "Done.")

    assert run_of(completion).limit == "it started more than 50 processes and threads"


@pytest.mark.parametrize(
    ("command", "caps", "limit"),
    [
        ("true", Caps(), "it needs more than 3 turns"),
        ("sleep 60", Caps(seconds=1.0), "it took more than 1 s"),
    ],
)
def test_a_run_that_reaches_a_limit_ends_there(command: str, caps: Caps, limit: str) -> None:
    started = time.monotonic()

    completion = completed(*[bash(command)] * 9, caps=caps, max_turns=3)

    assert run_of(completion).limit == limit
    assert time.monotonic() - started < 20


def test_a_skill_that_was_called_but_not_loaded_leaves_nothing_measured() -> None:
    run = run_of(
        completed(
            bash("rm -r ~/.claude/skills"), skill(), "Done.", skill_name="billing", skill=SKILL
        )
    )

    assert run.broken == "the model called the skill, but its instructions never reached it"


def test_a_run_in_which_the_model_chooses_ends_with_its_choice() -> None:
    upstream = Recorded([bash("ls"), skill(), "Never asked for."])
    task = {"skill_name": "billing", "skill": SKILL, "chooses": True, "max_turns": 3}

    run = run_of(asyncio.run(client(upstream).complete(asked(**task))))

    assert (run.taken, run.requests, run.limit, run.broken) == ("billing", 2, "", "")
    assert (run.offered, run.loaded, run.changed) == (True, None, ())


def test_a_program_that_ends_before_its_model_has_answered_is_missing_data() -> None:
    upstream = Recorded([bash("echo gone >&2; kill -9 $PPID")])

    with pytest.raises(ProviderError, match="claude-code: ended before its model had") as caught:
        asyncio.run(client(upstream).complete(asked()))

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
        asyncio.run(agent.complete(asked()))

    assert str(caught.value) == (
        "claude-code 9.9.9 fails its self-test: sent no request: unknown option: install another "
        "version, such as 2.1.330"
    )
    assert (upstream.bodies, caught.value.fatal) == ([], True)


def test_a_program_that_could_not_be_started_is_started_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    start, failures = asyncio.create_subprocess_exec, [BlockingIOError(errno.EAGAIN, "busy")]

    async def at_the_second_time(*given: Any, **more: Any) -> Any:
        if failures:
            raise failures.pop()
        return await start(*given, **more)

    async def twice() -> Completion:
        agent = client(Recorded(["Done."]))
        with pytest.raises(ProviderError, match="cannot start: busy"):
            await agent.complete(asked())
        return await agent.complete(asked())

    monkeypatch.setattr(asyncio, "create_subprocess_exec", at_the_second_time)

    assert asyncio.run(twice()).text == "Done."


def test_a_limit_of_cost_is_never_passed() -> None:
    upstream = Recorded([bash("true")] * 9)
    agent = client(upstream, limit=0.3)

    with pytest.raises(BudgetError, match=r"\$0\.3"):
        asyncio.run(agent.complete(asked()))

    assert len(upstream.bodies) == 6  # of $.05 each


def test_two_runs_at_once_share_no_files() -> None:
    def steps(name: str) -> Recorded:
        return Recorded([bash(f"echo > {name}; sleep 1; ls /workspace ~ /tmp; ps -e || true")])

    async def both() -> list[Recorded]:
        upstreams = [steps("first.txt"), steps("second.txt")]
        await asyncio.gather(*(client(each).complete(asked()) for each in upstreams))
        return upstreams

    first, second = asyncio.run(both())

    assert ("first.txt" in first.told, "second.txt" in first.told) == (True, False)
    assert ("first.txt" in second.told, "second.txt" in second.told) == (False, True)


class Failing(Recorded):
    """An upstream whose host does not answer."""

    async def exchange(self, asked: Request, content: Any, headers: Any, receive: Any) -> Any:
        del asked, content, headers, receive
        raise ProviderError("no reply from the host", retryable=True)


def test_a_host_that_does_not_answer_is_missing_data_and_no_miss() -> None:
    with pytest.raises(ProviderError, match="no reply from the host"):
        asyncio.run(client(Failing([])).complete(asked()))


def test_a_program_that_cannot_be_started_is_missing_data(monkeypatch: pytest.MonkeyPatch) -> None:
    async def no_process(*_: object, **__: object) -> None:
        raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")

    before = len([*Path("/proc/self/fd").iterdir()])
    monkeypatch.setattr(asyncio, "create_subprocess_exec", no_process)

    with pytest.raises(ProviderError, match="cannot start: Resource temporarily unavailable"):
        completed("Done.")

    assert len([*Path("/proc/self/fd").iterdir()]) == before


ENDLESS = """
import asyncio
from tests.agent_programs import bash, completed
completed(bash("setsid sleep {seconds} & sleep {seconds}"))
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_nothing_outlives_a_killed_session(number: signal.Signals) -> None:
    seconds = 700_000 + os.getpid()
    session = subprocess.Popen([sys.executable, "-c", ENDLESS.format(seconds=seconds)])
    _wait_for(str(seconds), present=True)

    session.send_signal(number)
    session.wait()

    _wait_for(str(seconds), present=False)


def _wait_for(word: str, *, present: bool) -> None:
    deadline = time.monotonic() + 20
    while _runs(word) is not present:
        assert time.monotonic() < deadline
        time.sleep(0.1)


def _runs(word: str) -> bool:
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = process.read_bytes().split(b"\0")
        except OSError:
            continue
        if words[0].endswith(b"sleep") and word.encode() in words:
            return True
    return False


async def reserve_nothing(_: int) -> Settle:
    raise AssertionError("no connection sends a request")


def test_an_agent_holds_no_more_connections_than_it_may(tmp_path: Path) -> None:
    async def opened() -> list[bytes | None]:
        proxy = Proxy(asked(), ClaudeCode(), Recorded([]), reserve_nothing, Caps())
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


class _Endless:
    """A host whose reply is larger than what connections hold."""

    headers: ClassVar = {"content-type": "text/event-stream"}

    async def aiter_bytes(self) -> AsyncIterator[bytes]:
        started = {"id": "a", "role": "assistant", "usage": {"input_tokens": 1, "output_tokens": 1}}
        yield _event(type="message_start", message=started)
        yield _event(
            type="content_block_start", index=0, content_block={"type": "text", "text": ""}
        )
        for _ in range(200):
            delta = {"type": "text_delta", "text": "word" * 5_000}
            yield _event(type="content_block_delta", index=0, delta=delta)

    async def exchange(
        self, _: Request, __: bytes, ___: Mapping[str, str], receive: Callable[[Reply], Any]
    ) -> Completion:
        completion: Completion = await receive(self)
        return completion

    def redacted(self, body: Any) -> Any:
        return body

    async def aclose(self) -> None:
        pass


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
        proxy = Proxy(asked(), ClaudeCode(), _Endless(), reserve, Caps())
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
        return proxy.tally.cost_usd

    assert asyncio.run(hang()) == 0.25
