"""Commands that start a program at each level of the sandbox."""

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

SYSTEM = (
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
    """The command that starts a program."""

    command: tuple[str, ...]
    """Arguments before the program's own command line."""
    files: tuple[int, ...] = ()
    """File descriptors that the command must inherit."""


@contextlib.contextmanager
def confined(
    level: Level, home: Workspace, readable: Sequence[Path], seconds: float
) -> Iterator[Start]:
    """Prepare the start of a program.

    Args:
        level: The level of the sandbox, not ``auto``.
        home: The workspace of the program.
        readable: Folders that it may read besides the system's.
        seconds: Wall time after which the launcher kills it; ignored for ``bwrap``.

    Yields:
        The command, whose file descriptors are closed at the end.
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
    readers = (*SYSTEM, str(home.root), *map(str, readable))
    return (*command, str(home.root / "tmp"), *readers, "--")


def _bubblewrap(root: Path, readable: Sequence[Path]) -> list[str]:
    """Return a command that hides other files, processes and the network; ``tmp`` is writable."""
    command = [shutil.which("bwrap") or "bwrap", "--unshare-all", "--die-with-parent"]
    # Shows only its own processes; the loader needs it to find libraries next to a program.
    command += ["--cap-drop", "ALL", "--proc", "/proc"]
    for folder in filter(os.path.exists, SYSTEM):
        if os.path.islink(folder):  # noqa: PTH114 - as below: copies the text of the link
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
    """Yield a file descriptor of a system call filter, or none on an unknown architecture.

    The filter denies what namespaces do not hide, such as the session's keyring and rarely used
    kernel interfaces.
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
