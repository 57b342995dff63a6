"""What the sandbox stops, and what it leaves."""

from __future__ import annotations

import contextlib
import hashlib
import os
import signal
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_upskill.sandbox import (
    Level,
    Limits,
    Outcome,
    Sandbox,
    SandboxError,
)
from pytest_upskill.workspace import workspace


def _working_levels() -> Iterator[Level]:
    levels: tuple[Level, ...] = ("bwrap", "landlock", "limits")
    for level in levels:
        try:
            yield Sandbox(level).level
        except SandboxError:
            continue


WORKING = list(_working_levels())
every_level = pytest.mark.parametrize("level", WORKING)


def _shell(level: Level, script: str, *arguments: str, limits: Limits | None = None) -> Outcome:
    with workspace() as home:
        program = ["/bin/sh", "-c", script, "sh", *arguments]
        return Sandbox(level).run(program, home, limits=limits or Limits(wall_s=20))


@pytest.fixture
def marker(tmp_path: Path) -> str:
    """Seconds to sleep that no process of another test sleeps."""
    digits = hashlib.sha256(str(tmp_path).encode()).digest()
    return f"95.{int.from_bytes(digits[:5], 'big')}"


def _running(marker: str) -> list[int]:
    found = []
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if marker.encode() in process.read_bytes():
                found.append(int(process.parent.name))
    return found


def _is_gone(marker: str) -> bool:
    deadline = time.monotonic() + 10
    while _running(marker) and time.monotonic() < deadline:
        time.sleep(0.01)
    return not _running(marker)


def test_auto_is_the_strongest_level_that_works() -> None:
    assert Sandbox("auto").level == WORKING[0]


def test_a_level_that_does_not_work_is_refused_with_the_cure(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")

    with pytest.raises(SandboxError, match=r"'bwrap' does not work.*use --upskill-sandbox auto"):
        Sandbox("bwrap")


def test_a_program_that_cannot_be_started_is_told_in_one_line() -> None:
    with (
        workspace() as home,
        pytest.raises(SandboxError, match=r"^cannot start /nowhere/cc: No such file or directory$"),
    ):
        Sandbox("off").run(["/nowhere/cc"], home)


def test_off_keeps_the_wall_clock(marker: str) -> None:
    outcome = _shell("off", f"sleep {marker}", limits=Limits(wall_s=0.3))

    assert outcome.ended == "timeout"
    assert _is_gone(marker)


@every_level
def test_the_environment_is_built_from_nothing(
    level: Level, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-planted")
    monkeypatch.setenv("HTTPS_PROXY", "http://planted")
    monkeypatch.setenv("NVCC_APPEND_FLAGS", "planted")

    outcome = _shell(level, "env")

    names = {line.partition("=")[0] for line in outcome.output.splitlines()}
    assert names <= {"PATH", "LC_ALL", "HOME", "TMPDIR", "SOURCE_DATE_EPOCH", "PWD", "_", "OLDPWD"}
    assert "planted" not in outcome.output


@every_level
def test_stdin_is_closed(level: Level) -> None:
    outcome = _shell(level, "read -r line || echo nothing to read")

    assert outcome.output == "nothing to read\n"


@every_level
def test_files_of_the_machine_are_hidden_where_the_level_says_so(
    level: Level, tmp_path: Path
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("the planted key\n")

    outcome = _shell(level, 'cat "$1" /etc/passwd', str(secret))

    hidden = level != "limits"
    assert ("planted" not in outcome.output) is hidden
    assert ("root:" not in outcome.output) is hidden


@every_level
def test_the_environment_of_the_session_is_hidden_where_the_level_says_so(level: Level) -> None:
    outcome = _shell(level, 'cat "/proc/$1/environ" > "$TMPDIR/got" && echo read', str(os.getpid()))

    assert ("read" not in outcome.output) is (level != "limits")


@every_level
def test_nothing_can_be_written_outside_where_the_level_says_so(
    level: Level, tmp_path: Path
) -> None:
    target = tmp_path / "written"

    _shell(level, 'echo x > "$1"; echo x > ../cwd/file; echo x > "$TMPDIR/file"', str(target))

    assert target.exists() is (level == "limits")


@every_level
def test_the_network_is_closed_where_the_level_says_so(level: Level) -> None:
    connect = "import socket, sys; socket.create_connection(('127.0.0.1', int(sys.argv[1])), 5)"

    with socket.create_server(("127.0.0.1", 0)) as server, workspace() as home:
        port = str(server.getsockname()[1])
        python = [str(Path(sys.executable).resolve()), "-I", "-S", "-c", connect, port]
        outcome = Sandbox(level).run(python, home, readable=[Path(sys.base_prefix)])

    assert (outcome.returncode != 0) is (level != "limits")


@every_level
def test_the_wall_clock_ends_a_program_and_its_children(level: Level, marker: str) -> None:
    start = time.monotonic()

    outcome = _shell(level, f"sleep {marker} & sleep {marker}", limits=Limits(wall_s=0.3))

    assert outcome.ended == "timeout"
    assert time.monotonic() - start < 10
    assert _is_gone(marker)


@every_level
def test_children_do_not_outlive_a_program_that_ends(level: Level, marker: str) -> None:
    outcome = _shell(level, f"sleep {marker} > /dev/null 2>&1 & exit 3")

    assert (outcome.ended, outcome.returncode) == ("exited", 3)
    assert _is_gone(marker)


@every_level
def test_a_program_cannot_leave_its_group_where_the_level_says_so(
    level: Level, marker: str
) -> None:
    leave = (
        "import os, time\nif os.fork() == 0:\n    os.setsid()\n"
        f"    os.execv('/bin/sleep', ['sleep', '{marker}'])\ntime.sleep(0.5)"
    )

    with workspace() as home:
        python = [str(Path(sys.executable).resolve()), "-I", "-S", "-c", leave]
        Sandbox(level).run(python, home, readable=[Path(sys.base_prefix)])

    left = _running(marker)
    for process in left:
        os.kill(process, signal.SIGKILL)
    assert bool(left) is (level == "limits")


@every_level
def test_output_is_cut_and_its_source_killed(level: Level) -> None:
    outcome = _shell(level, "while :; do echo 0123456789; done", limits=Limits(output_bytes=999))

    assert outcome.ended == "output"
    assert len(outcome.output) == 999


@every_level
def test_cpu_time_is_limited(level: Level) -> None:
    outcome = _shell(level, "while :; do :; done", limits=Limits(cpu_s=1, wall_s=20))

    assert outcome.ended == "exited"
    assert outcome.returncode != 0


@every_level
def test_memory_is_limited(level: Level) -> None:
    script = "x=x; while :; do x=$x$x; done"

    outcome = _shell(level, script, limits=Limits(memory_bytes=64 << 20, wall_s=20))

    assert outcome.ended == "exited"
    assert outcome.returncode != 0


@every_level
def test_the_size_of_files_is_limited(level: Level) -> None:
    script = 'yes 2>&1 | head -c 100000 > "$TMPDIR/file"; wc -c < "$TMPDIR/file"'

    outcome = _shell(level, script, limits=Limits(file_bytes=4096, wall_s=20))

    assert outcome.output.split()[-1] == "4096"


@every_level
def test_the_number_of_open_files_is_limited(level: Level) -> None:
    outcome = _shell(level, "ulimit -n", limits=Limits(open_files=32))

    assert outcome.output == "32\n"


@every_level
def test_a_fork_bomb_ends_with_the_wall_clock(level: Level, marker: str) -> None:
    bomb = f"i=0; while [ $i -lt 200 ]; do sleep {marker} & i=$((i+1)); done; wait"

    _shell(level, bomb, limits=Limits(wall_s=1.0, processes=50))

    assert _is_gone(marker)


@every_level
def test_the_number_of_processes_is_limited(level: Level) -> None:
    outcome = _shell(level, "ulimit -u 2>/dev/null || ulimit -p", limits=Limits(processes=50))

    # Outside of a user namespace the kernel counts what else the user runs.
    assert int(outcome.output) == 50 if level == "bwrap" else int(outcome.output) > 50


@every_level
def test_output_cannot_steer_a_terminal(level: Level) -> None:
    outcome = _shell(level, r"printf 'a\033[31mb\007c\342\200\256d\377'")

    assert outcome.output == "a\ufffdb\ufffdc\ufffdd\ufffd"


def test_a_closed_sandbox_kills_what_runs_and_runs_no_more(marker: str) -> None:
    sandbox = Sandbox()
    outcomes: list[Outcome] = []

    def sleep() -> None:
        with workspace() as home:
            outcomes.append(sandbox.run(["/bin/sh", "-c", f"sleep {marker}"], home))

    thread = threading.Thread(target=sleep)
    thread.start()
    while not _running(marker):
        time.sleep(0.01)
    sandbox.close()
    thread.join(10)
    sleep()

    assert [outcome.ended for outcome in outcomes] == ["stopped", "stopped"]
    assert _is_gone(marker)


def test_a_workspace_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    with workspace() as home:
        home.write("src/deep/a.c", "int x;")
        Sandbox("limits").run(["/bin/sh", "-c", 'echo x > "$TMPDIR/x"'], home)

    assert list(tmp_path.iterdir()) == []


def test_a_file_is_never_written_twice_or_through_a_link(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("untouched")

    with workspace() as home:
        (home.root / "link").symlink_to(victim)
        with pytest.raises(OSError, match="exists"):
            home.write("link", "overwritten")

    assert victim.read_text() == "untouched"
