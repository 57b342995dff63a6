"""What the sandbox ends, and when."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import pytest

from pytest_upskill.sandbox.confinement import can_change_user
from pytest_upskill.sandbox.limits import Level, Limits
from pytest_upskill.sandbox.run import Outcome, Sandbox, workspace
from tests.sandbox_programs import every_level, every_level_and_off, is_gone, running, shell

pytestmark = pytest.mark.slow


@every_level_and_off
def test_the_wall_clock_ends_a_program_and_its_children(level: Level, marker: str) -> None:
    start = time.monotonic()

    outcome = shell(level, f"sleep {marker} & sleep {marker}", limits=Limits(wall_s=0.3))

    assert outcome.ended == "time"
    assert time.monotonic() - start < 10
    assert is_gone(marker)


@every_level_and_off
def test_output_is_cut_and_its_source_killed(level: Level) -> None:
    outcome = shell(level, "while :; do echo 0123456789; done", limits=Limits(output_bytes=999))

    assert outcome.ended == "output"
    assert len(outcome.output) == 999


@every_level
def test_cpu_time_is_limited(level: Level) -> None:
    outcome = shell(level, "while :; do :; done", limits=Limits(cpu_s=1, wall_s=20))

    assert outcome.ended == "exited"
    assert outcome.returncode != 0


@every_level
def test_memory_is_limited(level: Level) -> None:
    limits = Limits(memory_bytes=64 << 20, wall_s=20)

    # First, so that a missing limit fails the test before it fills the machine's memory.
    assert shell(level, "ulimit -v", limits=limits).output == f"{64 << 10}\n"
    outcome = shell(level, "x=x; while :; do x=$x$x; done", limits=limits)

    assert outcome.ended == "exited"
    assert outcome.returncode != 0


@every_level
def test_the_size_of_files_is_limited(level: Level) -> None:
    script = 'yes 2>&1 | head -c 100000 > "$TMPDIR/file"; wc -c < "$TMPDIR/file"'

    outcome = shell(level, script, limits=Limits(file_bytes=4096, wall_s=20))

    assert outcome.output.split()[-1] == "4096"


@every_level_and_off
def test_the_size_of_all_files_together_is_limited(level: Level) -> None:
    script = 'i=0; while :; do i=$((i+1)); yes | head -c 1000000 > "$TMPDIR/$i"; done'

    outcome = shell(level, script, limits=Limits(folder_bytes=20 << 20, wall_s=30))

    assert outcome.ended == "files"


@every_level_and_off
def test_the_number_of_files_is_limited(level: Level) -> None:
    script = 'i=0; while :; do i=$((i+1)); mkdir -p "$TMPDIR/$i/a"; done'

    outcome = shell(level, script, limits=Limits(files=50, wall_s=30))

    assert outcome.ended == "files"


@every_level
def test_the_number_of_open_files_is_limited(level: Level) -> None:
    outcome = shell(level, "ulimit -n", limits=Limits(open_files=32))

    assert outcome.output == "32\n"


@every_level_and_off
def test_a_fork_bomb_ends_with_the_wall_clock(level: Level, marker: str) -> None:
    # Fewer than the limit, where a shell would end by itself.
    bomb = f"i=0; while [ $i -lt 100 ]; do sleep {marker} & i=$((i+1)); done; wait"
    start = time.monotonic()

    shell(level, bomb, limits=Limits(wall_s=1.0, processes=400))

    assert time.monotonic() - start < 20
    assert is_gone(marker)


@every_level
def test_the_number_of_processes_is_limited(level: Level) -> None:
    script = "i=0; while [ $i -lt 60 ]; do sleep 5 & i=$((i+1)); echo $i; done; kill 0"
    started = shell(level, script, limits=Limits(processes=20)).output.split()
    outcome = shell(level, "ulimit -u 2>/dev/null || ulimit -p", limits=Limits(processes=20))

    if can_change_user() or (level == "bwrap" and os.getuid() != 0):
        assert "19" in started or "18" in started
        assert "20" not in started
        assert outcome.output == "20\n"
    else:
        # The kernel counts what else this user runs.
        assert int(outcome.output) >= 20


@every_level
def test_programs_that_run_at_a_time_leave_each_other_enough_processes(
    level: Level, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: range(64))
    monkeypatch.setattr("pytest_upskill.sandbox.run.can_change_user", lambda: False)

    outcome = shell(level, "ulimit -u 2>/dev/null || ulimit -p", limits=Limits(processes=50))

    assert int(outcome.output) == 50 if level == "bwrap" else int(outcome.output) > 64 * 50


def test_where_processes_are_not_counted_there_are_as_many_as_outside(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ask = "ulimit -u 2>/dev/null || ulimit -p"
    outside = shell("off", ask)
    monkeypatch.setattr(Path, "glob", lambda *_: iter(()))
    monkeypatch.setattr("pytest_upskill.sandbox.run.can_change_user", lambda: False)

    inside = shell("limits", ask, limits=Limits(processes=50))

    assert inside.output == outside.output


def test_a_closed_sandbox_kills_what_runs_and_runs_no_more(marker: str) -> None:
    sandbox = Sandbox()
    outcomes: list[Outcome] = []

    def sleep() -> None:
        with workspace() as home:
            outcomes.append(sandbox.run(["/bin/sh", "-c", f"sleep {marker}"], home))

    thread = threading.Thread(target=sleep)
    thread.start()
    while not running(marker):
        time.sleep(0.01)
    sandbox.close()
    thread.join(10)
    sleep()

    assert [outcome.ended for outcome in outcomes] == ["stopped", "stopped"]
    assert is_gone(marker)


@every_level_and_off
def test_deep_folders_of_one_program_do_not_stop_the_next(level: Level) -> None:
    deep = "mkdir -p $(printf 'd/%.0s' $(seq 1200))"
    sandbox = Sandbox(level)
    with workspace() as home:
        sandbox.run(["/bin/sh", "-c", f"cd ../tmp && {deep}"], home)

        after = sandbox.run(["/bin/sh", "-c", "echo next > ../tmp/file && cat ../tmp/file"], home)

    assert after.output == "next\n"
