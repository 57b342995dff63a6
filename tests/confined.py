"""Programs in the sandbox, at each level that works on this machine."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_upskill.sandbox import Limits, Outcome, Sandbox, SandboxError
from pytest_upskill.sandbox_levels import Level
from pytest_upskill.workspace import workspace


def _working_levels() -> Iterator[Level]:
    levels: tuple[Level, ...] = ("bwrap", "landlock", "limits")
    for level in levels:
        try:
            yield Sandbox(level).level
        except SandboxError:
            continue


LEVELS = list(_working_levels())
every_level = pytest.mark.parametrize(
    "level",
    [
        pytest.param(
            level,
            marks=pytest.mark.skipif(level not in LEVELS, reason=f"no {level} on this machine"),
        )
        for level in ("bwrap", "landlock", "limits")
    ],
)


def shell(level: Level, script: str, *arguments: str, limits: Limits | None = None) -> Outcome:
    """Run a script with arguments in an empty workspace."""
    with workspace() as home:
        program = ["/bin/sh", "-c", script, "sh", *arguments]
        return Sandbox(level).run(program, home, limits=limits or Limits(wall_s=20))


def running(marker: str) -> list[int]:
    """List the processes whose command line has the marker in it."""
    found = []
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if marker.encode() in process.read_bytes():
                found.append(int(process.parent.name))
    return found


def is_gone(marker: str) -> bool:
    """Tell whether no process has the marker, at the latest ten seconds from now."""
    deadline = time.monotonic() + 10
    while running(marker) and time.monotonic() < deadline:
        time.sleep(0.01)
    return not running(marker)
