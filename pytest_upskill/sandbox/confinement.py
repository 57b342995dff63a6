"""How a program is started at each level of the sandbox."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pytest_upskill.sandbox.levels import Level
from pytest_upskill.sandbox.seccomp import build_filter
from pytest_upskill.sandbox.syscalls import MACHINES
from pytest_upskill.sandbox.workspace import Workspace

_SYSTEM = (
    "/usr",
    "/bin",
    "/lib",
    "/lib32",
    "/lib64",
    "/nix/store",
    "/etc/alternatives",
    "/etc/ld.so.cache",
)
_LAUNCHER = Path(__file__).with_name("launcher.py")


@dataclass(frozen=True, slots=True)
class Start:
    """What goes before a program's own arguments."""

    command: tuple[str, ...]
    files: tuple[int, ...] = ()
    """Descriptors that the command needs open."""


@contextlib.contextmanager
def confined(
    level: Level, home: Workspace, readable: Sequence[Path], seconds: float
) -> Iterator[Start]:
    """Prepare to start a program that works in ``home``.

    Args:
        level: How to confine it; not ``auto``.
        home: Where it works.
        readable: Folders it needs besides the system's own.
        seconds: When it is killed at the latest, where a launcher does that.
    """
    if level != "bwrap":
        yield Start(_launcher(level, home, readable, seconds))
        return
    with _open_filter() as filters:
        command = _bubblewrap(home.root, readable)
        options = [word for file in filters for word in ("--seccomp", str(file))]
        yield Start((*command, *options, "--"), filters)


def _launcher(
    level: Level, home: Workspace, readable: Sequence[Path], seconds: float
) -> tuple[str, ...]:
    interpreter = os.path.realpath(sys.executable)
    command = (interpreter, "-I", "-S", str(_LAUNCHER), str(seconds))
    if level != "landlock":
        return (*command, "", "--")
    readers = (*_SYSTEM, str(home.root), *map(str, readable))
    return (*command, str(home.root / "tmp"), *readers, "--")


def _bubblewrap(root: Path, readable: Sequence[Path]) -> list[str]:
    """Hide all but the system's programs; no network, no other processes, one folder to write."""
    command = [shutil.which("bwrap") or "bwrap", "--unshare-all", "--die-with-parent"]
    # Its own processes only; without it the loader does not find libraries beside a program.
    command += ["--cap-drop", "ALL", "--proc", "/proc"]
    for folder in filter(os.path.exists, _SYSTEM):
        if os.path.islink(folder):  # noqa: PTH114 - as the next line: the link's own text is wanted
            command += ["--symlink", os.readlink(folder), folder]  # noqa: PTH115
        else:
            command += ["--ro-bind", folder, folder]
    for path in filter(Path.exists, readable):
        command += ["--ro-bind", str(path), str(path)]
    writable = str(root / "tmp")
    command += ["--dev-bind", "/dev/null", "/dev/null", "--ro-bind", str(root), str(root)]
    return [*command, "--bind", writable, writable, "--chdir", str(root / "cwd")]


@contextlib.contextmanager
def _open_filter() -> Iterator[tuple[int, ...]]:
    """Open a filter of system calls to read, where the machine's are known.

    It denies what namespaces do not hide: the session's keyring, rare interfaces of the kernel.
    """
    machine = os.uname().machine
    if machine not in MACHINES:
        yield ()
        return
    readable, written = os.pipe()
    try:
        os.write(written, build_filter(machine, files=True, signals=True, truncation=True))
        os.close(written)
        yield (readable,)
    finally:
        os.close(readable)
