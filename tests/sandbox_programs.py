"""Programs in the sandbox, at each level that works on this machine."""

from __future__ import annotations

import contextlib
import hashlib
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_upskill.sandbox.limits import Level, Limits
from pytest_upskill.sandbox.run import Outcome, Sandbox, SandboxError, workspace


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
    for process in Path("/proc").glob("[0-9]*"):
        # It can end at any moment, also while `glob` would look whether it has a "cmdline".
        with contextlib.suppress(OSError):
            if marker.encode() in (process / "cmdline").read_bytes():
                found.append(int(process.name))
    return found


def wait_for(marker: str, count: int) -> None:
    """Wait until so many programs sleep for the seconds of the marker, for a minute at most."""
    deadline = time.monotonic() + 60
    while len([each for each in running(marker) if _is_sleep(each)]) < count:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def _is_sleep(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/comm").read_text() == "sleep\n"
    except OSError:
        return False


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


_MAPPED = 4096 if os.getuid() == 0 else 1 << 23
"""Bytes of a file to map: only root can measure more of it than is mapped."""

HIDING_FILES = {
    "kept open": "kept.append(file)",
    "that never had a name": "kept.append(file)",
    "kept open by a thread of a process that has ended": "kept.append(file)",
    "mapped": f"ctypes.CDLL(None).mmap(None, {_MAPPED}, 1, 1, file.fileno(), 0); file.close()",
    "sent to nobody": "socket.send_fds(sockets[0], [b'x'], [file.fileno()]); file.close()",
    "allocated": "kept.append(file)",
}
"""Python that hides an open file that is in no folder, by what becomes of it."""


def hiding_files(way: str, folder: str) -> str:
    """Return Python that writes files of 8 MiB in a folder, and hides each, for five seconds."""
    unnamed = "open(os.open(folder, os.O_TMPFILE | os.O_RDWR, 0o600), 'r+b')"
    made = unnamed if way == "that never had a name" else "open(f'{folder}/x', 'w+b')"
    write = "file.write(bytes(1 << 23))"
    if way == "allocated":
        write = "os.posix_fallocate(file.fileno(), 0, 1 << 23)"
    start = "fill()"
    if way.endswith("has ended"):
        start = (
            "threading.Thread(target=fill).start(); "
            "ctypes.CDLL(None).syscall({'x86_64': 60, 'aarch64': 93}[os.uname().machine], 0)"
        )
    return f"""
import ctypes, os, socket, threading, time
folder, kept, sockets = {folder!r}, [], socket.socketpair()
def fill():
    for _ in range(16):
        file = {made}
        {write}
        file.flush()
        {"pass" if way == "that never had a name" else "os.unlink(file.name)"}
        {HIDING_FILES[way]}
        time.sleep(0.05)
    time.sleep(5)
{start}
"""
