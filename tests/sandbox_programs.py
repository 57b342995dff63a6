"""Programs in the sandbox, at each level that works on this machine."""

from __future__ import annotations

import contextlib
import hashlib
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_upskill.sandbox.levels import Level
from pytest_upskill.sandbox.limits import Limits
from pytest_upskill.sandbox.run import Outcome, Sandbox, SandboxError
from pytest_upskill.sandbox.workspace import workspace


def _working_levels() -> Iterator[Level]:
    levels: tuple[Level, ...] = ("bwrap", "landlock", "limits")
    for level in levels:
        try:
            yield Sandbox(level).level
        except SandboxError:
            continue


LEVELS = list(_working_levels())
_each = [
    pytest.param(
        level, marks=pytest.mark.skipif(level not in LEVELS, reason=f"no {level} on this machine")
    )
    for level in ("bwrap", "landlock", "limits")
]
every_level = pytest.mark.parametrize("level", _each)
every_confining_level = pytest.mark.parametrize(
    "level", [level for level in LEVELS if level != "limits"]
)
every_level_and_off = pytest.mark.parametrize("level", [*_each, "off"])


@pytest.fixture
def marker(tmp_path: Path) -> str:
    """Seconds to sleep that no process of another test sleeps."""
    digits = hashlib.sha256(str(tmp_path).encode()).digest()
    return f"95.{int.from_bytes(digits[:5], 'big')}"


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
    """Return whether no process has the marker any more, after ten seconds at most."""
    deadline = time.monotonic() + 10
    while running(marker) and time.monotonic() < deadline:
        time.sleep(0.01)
    return not running(marker)


OPENED_SETTINGS = """
import os
opened, number = [], 0
for folder, _, names in os.walk("/proc/sys"):
    for name in names:
        number += 1
        try:
            os.close(os.open(os.path.join(folder, name), os.O_WRONLY | os.O_NONBLOCK))
            opened.append(name)
        except OSError:
            pass
print("opened", opened, "of", number)
"""
"""A program that opens each setting of the kernel for writing, and changes none."""
