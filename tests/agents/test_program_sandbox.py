"""What a program in an agent's box can change of the machine: only the folders of its run."""

from __future__ import annotations

import asyncio
import re
import shlex
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_upskill.agents.program_sandbox import WRITABLE, error_in
from pytest_upskill.agents.programs import ClaudeCode, Launch
from pytest_upskill.checks.files import Setup
from pytest_upskill.models import ProviderError, Request
from pytest_upskill.sandbox.confinement import can_change_user
from tests.agent_programs import (
    Recorded,
    agent_request,
    bash,
    client,
    completed,
    needs_bubblewrap,
    run_of,
)
from tests.pages import CHECKOUT
from tests.sandbox_programs import HIDING_FILES, OPENED_SETTINGS, hiding_files

pytestmark = [pytest.mark.slow, needs_bubblewrap]


def printed(script: str) -> str:
    """Return what a Python script prints in the box."""
    upstream = Recorded([bash(f"python3 -c {shlex.quote(script)}"), "Done."])
    asyncio.run(client(upstream).complete(agent_request()))
    result = upstream.bodies[-1]["messages"][-1]["content"][0]["content"]
    assert isinstance(result, str)
    return result.strip()


@pytest.mark.parametrize("can_change_user", [can_change_user, lambda: False])
def test_no_setting_of_the_kernel_can_be_opened_for_writing(
    monkeypatch: pytest.MonkeyPatch, can_change_user: Callable[[], bool]
) -> None:
    monkeypatch.setattr("pytest_upskill.sandbox.run.can_change_user", can_change_user)

    assert re.fullmatch(r"opened \[\] of [1-9]\d\d", printed(OPENED_SETTINGS))


@pytest.mark.parametrize(
    "attempt",
    [
        "libc.unshare(0x10000000)",  # a user namespace
        "libc.unshare(0x00020000)",  # mounts
        "libc.setns(os.open('/proc/self/ns/user', 0), 0)",
        "libc.syscall({'x86_64': 56, 'aarch64': 220}[os.uname().machine], 0x10000011, 0, 0, 0, 0)",
        "libc.syscall(435, bytes(88), 88)",  # clone3
        "socket.socket(40, 1)",  # VSOCK, which no namespace holds
        "socket.socket(38, 5)",  # ALG
        "socket.socket(17, 3)",  # PACKET
        "libc.mount(b'none', b'/tmp', b'tmpfs', 0, None)",
    ],
)
def test_no_namespace_can_be_made_and_no_socket_that_a_namespace_does_not_hold(
    attempt: str,
) -> None:
    script = (
        "import ctypes, os, socket\nlibc = ctypes.CDLL(None, use_errno=True)\n"
        f"try:\n    done = {attempt}\n    error = ctypes.get_errno() if done == -1 else 0\n"
        "except OSError as problem:\n    error = problem.errno\n"
        "if error != 0 or done: print(os.strerror(error))"
    )

    refused = {
        "Operation not permitted",
        "Function not implemented",
        "Address family not supported by protocol",
    }
    assert printed(script) in refused


def test_the_kernel_holds_a_fork_bomb_back_until_it_is_ended() -> None:
    script = "import resource; print(resource.getrlimit(resource.RLIMIT_NPROC))"

    assert printed(script) == "(2100, 2100)"


def test_only_the_folders_that_the_docs_name_can_be_written() -> None:
    upstream = Recorded([bash("find / -writable ! -type l 2>/dev/null"), "Done."])
    asyncio.run(client(upstream).complete(agent_request()))
    result = upstream.bodies[-1]["messages"][-1]["content"][0]["content"]

    found = {name for name in result.split() if not re.match(r"/proc/\d+/|/proc/self/", name)}
    for folder in WRITABLE.values():
        found = {name for name in found if name != folder and not name.startswith(f"{folder}/")}

    devices = {"full", "null", "ptmx", "pts", "pts/ptmx", "random", "tty", "urandom", "zero"}
    assert found <= {f"/dev/{name}" for name in devices} | {"/proc/keys", "/run/upskill/proxy"}
    page = (CHECKOUT / "docs" / "agents.md").read_text("utf-8")
    (named,) = re.findall(r"It can write to ([^.]*?),\s+at most", page)
    places = {"the workspace": "/workspace", "its home": "/home/agent"}
    words = re.split(r", | and ", named.replace("`", ""))
    assert {places.get(word, word) for word in words} == {*WRITABLE.values()}


@pytest.mark.parametrize("way", HIDING_FILES)
def test_files_that_no_folder_shows_count_too(monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    monkeypatch.setattr("pytest_upskill.agents.program_sandbox._FOLDER_BYTES", 32 << 20)

    completion = completed(bash(f"python3 -c {shlex.quote(hiding_files(way, '/tmp'))}"), "Done.")

    assert run_of(completion).limit.startswith("it wrote more than ")


@pytest.mark.parametrize(
    ("output", "error"),
    [
        (
            '{"type": "result", "is_error": true, "result": "API Error: 529"}\n{"type": "end"}',
            "API Error: 529",
        ),
        ('{"type": "turn.failed", "error": {"message": "stream  closed"}}\n\n', "stream closed"),
        ('{"type": "item", "item": {"type": "error", "message": "no key"}}\nBye.', "no key"),
        (
            "Error: cannot find module 'x'\n    at load (loader:1)\n\nNode.js v22",
            "Error: cannot find module 'x'",
        ),
        ('{"type": "tool_result", "is_error": true, "content": "ls failed"}\nStopped.', "Stopped."),
        ('{"type": "result", "is_error": false, "result": "Done."}', ""),
        ("unknown option: --print\n", "unknown option: --print"),
        ("", ""),
    ],
)
def test_the_cause_is_the_programs_own_error_and_not_its_last_line(output: str, error: str) -> None:
    assert error_in(output) == error


def test_git_rg_and_certificates_work_in_the_box() -> None:
    command = (
        "git init -q . && git -c user.name=a -c user.email=b commit -q --allow-empty -m x && "
        "head -c 3 /dev/zero | wc -c && head -c 3 /dev/urandom | wc -c && "
        "(rg -q x /etc/passwd || true) && python3 -m pytest --version && "
        "ls /etc/ssl/certs | head -1"
    )
    upstream = Recorded([bash(command), "Done."])

    completion = asyncio.run(client(upstream).complete(agent_request()))

    result = upstream.bodies[-1]["messages"][-1]["content"][0]["content"]
    assert re.search(r"3\s+3\s+pytest \d", result), result
    run = completion.agent_run
    assert run is not None
    assert run.git is not None
    assert run.git.commits == 1


class WithSettings(ClaudeCode):
    def launch(self, request: Request, base_url: str) -> Launch:
        return replace(super().launch(request, base_url), home={".agent/settings": "{}"})


@pytest.mark.parametrize(
    "setup",
    [
        "ln -s {outside} ~/.agent",
        "mkdir ~/.agent; ln -s {outside}/new ~/.agent/settings",
        "mkdir ~/.agent; mkfifo ~/.agent/settings",
        "cd ${{TMPDIR%/*}}; mv agent-home old; ln -s {outside} agent-home",
    ],
)
def test_no_link_that_a_setup_makes_leads_settings_of_the_program_out_of_its_home(
    tmp_path: Path, setup: str
) -> None:
    agent = client(Recorded(["Done."]))
    agent.cli = WithSettings()
    task = agent_request(setup=Setup(commands=(setup.format(outside=tmp_path),)))

    with suppress(ProviderError):
        asyncio.run(agent.complete(task))

    assert [*tmp_path.iterdir()] == []
