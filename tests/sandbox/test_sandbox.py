"""What the sandbox hides, and what it leaves."""

from __future__ import annotations

import os
import selectors
import socket
import sys
import tempfile
import time
from pathlib import Path

import pytest

from pytest_upskill.sandbox.confinement import PYTHON, PYTHON_FOLDERS, can_change_user
from pytest_upskill.sandbox.limits import Level
from pytest_upskill.sandbox.run import Sandbox, SandboxError, workspace
from tests.sandbox_programs import (
    LEVELS,
    OPENED_SETTINGS,
    every_confining_level,
    every_level,
    every_level_and_off,
    shell,
)


def test_auto_is_the_strongest_level_that_works() -> None:
    assert Sandbox("auto").level == LEVELS[0]


def test_a_level_that_does_not_work_is_refused_with_the_cure(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")

    with pytest.raises(SandboxError, match=r"'bwrap' does not work.*use --upskill-sandbox auto"):
        Sandbox("bwrap")


def test_a_program_that_cannot_be_started_is_reported_in_one_line() -> None:
    with (
        workspace() as home,
        pytest.raises(SandboxError, match=r"^cannot start /nowhere/cc: No such file or directory$"),
    ):
        Sandbox("off").run(["/nowhere/cc"], home)


@every_level_and_off
def test_the_environment_is_built_from_nothing(
    level: Level, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-planted")
    monkeypatch.setenv("HTTPS_PROXY", "http://planted")
    monkeypatch.setenv("NVCC_APPEND_FLAGS", "planted")

    outcome = shell(level, "env")

    names = {line.partition("=")[0] for line in outcome.output.splitlines()}
    assert names <= {"PATH", "LC_ALL", "HOME", "TMPDIR", "SOURCE_DATE_EPOCH", "PWD", "_", "OLDPWD"}
    assert "planted" not in outcome.output


@every_level_and_off
def test_stdin_is_closed(level: Level) -> None:
    outcome = shell(level, "read -r line || echo nothing to read")

    assert outcome.output == "nothing to read\n"


@every_level
def test_what_a_program_prints_last_is_read_however_late(
    level: Level, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Late(selectors.DefaultSelector):
        """Returns as on a machine that has other things to do, long after it has looked."""

        def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
            found = super().select(timeout)
            if not found:
                time.sleep(0.5)
            return found

    monkeypatch.setattr(selectors, "DefaultSelector", Late)

    outcome = shell(level, "sleep 0.3; echo done")

    assert outcome.output == "done\n"


@every_level
def test_files_of_the_machine_are_hidden_where_the_level_says_so(
    level: Level, tmp_path: Path
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("the planted key\n")

    outcome = shell(level, 'cat "$1" /etc/passwd', str(secret))

    hidden = level != "limits"
    assert ("planted" not in outcome.output) is hidden
    assert ("root:" not in outcome.output) is hidden


@every_level
def test_the_environment_of_the_session_is_hidden_where_the_level_says_so(level: Level) -> None:
    outcome = shell(level, 'cat "/proc/$1/environ" > "$TMPDIR/got" && echo read', str(os.getpid()))

    assert ("read" not in outcome.output) is (level != "limits" or can_change_user())


@every_level
def test_nothing_can_be_written_outside_where_the_level_says_so(
    level: Level, tmp_path: Path
) -> None:
    target = tmp_path / "written"

    shell(level, 'echo x > "$1"; echo x > ../cwd/file; echo x > "$TMPDIR/file"', str(target))

    assert target.exists() is (level == "limits")


@pytest.mark.parametrize("level", [level for level in LEVELS if level != "limits"])
def test_no_folder_of_the_system_can_be_written(level: Level) -> None:
    script = "for d in / /dev /proc /proc/sys/kernel /tmp /etc /usr ..; do"
    script += (
        " (echo x > $d/upskill-probe && echo $d); done 2>&1; cat /proc/keys 2>&1 || echo hidden"
    )

    *lines, keys = shell(level, script).output.splitlines()

    assert len(lines) > 7
    assert [line for line in lines if line.startswith(("/", ".."))] == []
    assert keys == "hidden"


@every_confining_level
def test_no_setting_of_the_kernel_can_be_written(level: Level) -> None:
    with workspace() as home:
        python = [str(PYTHON), "-I", "-S", "-c", OPENED_SETTINGS]
        outcome = Sandbox(level).run(python, home, readable=PYTHON_FOLDERS)

    assert outcome.output.startswith("opened [] of ")


@every_level
def test_the_network_is_closed_where_the_level_says_so(level: Level) -> None:
    connect = "import socket, sys; socket.create_connection(('127.0.0.1', int(sys.argv[1])), 5)"

    with socket.create_server(("127.0.0.1", 0)) as server, workspace() as home:
        port = str(server.getsockname()[1])
        python = [str(Path(sys.executable).resolve()), "-I", "-S", "-c", connect, port]
        outcome = Sandbox(level).run(python, home, readable=[Path(sys.base_prefix)])

    assert (outcome.returncode != 0) is (level != "limits")


@every_level
def test_programs_of_one_workspace_can_go_on_with_each_others_files(level: Level) -> None:
    sandbox = Sandbox(level)
    with workspace() as home:
        home.write("tmp/folder/file", "of pytest\n")
        (home.root / "tmp/folder/file").chmod(0o600)
        who = [
            sandbox.run(["/bin/sh", "-c", f"umask 077; {script}; stat -c %u ."], home).output
            for script in ("cd $TMPDIR/folder; echo x >> file", "cd $TMPDIR/folder; rm file")
        ]

    assert who[0] == who[1]
    assert (who[0] != "0\n") is (os.getuid() != 0 or can_change_user())


@every_level_and_off
def test_output_cannot_steer_a_terminal(level: Level) -> None:
    outcome = shell(level, r"printf 'a\033[31mb\007c\342\200\256d\377'")

    assert outcome.output == "a\ufffdb\ufffdc\ufffdd\ufffd"


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
