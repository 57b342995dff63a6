"""Commands that start a program at each level of the sandbox."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pytest_upskill.sandbox.interpreter import PYTHON
from pytest_upskill.sandbox.levels import Level
from pytest_upskill.sandbox.own_user import BECOMING, BECOMING_NAMES
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
_NAMESPACES = (
    "--unshare-ipc",
    "--unshare-pid",
    "--unshare-net",
    "--unshare-uts",
    "--unshare-cgroup-try",
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
    level: Level, home: Workspace, readable: Sequence[Path], seconds: float, *, own_user: bool
) -> Iterator[Start]:
    """Prepare the start of a program.

    Args:
        level: The level of the sandbox, not ``auto``.
        home: The workspace of the program.
        readable: Folders that it may read besides the system's.
        seconds: Wall time after which the launcher kills it; ignored for ``bwrap``.
        own_user: Whether the program begins with the command from `becoming`.

    Yields:
        The command, whose file descriptors are closed at the end.
    """
    if level != "bwrap":
        kept = BECOMING if own_user else 0
        yield Start(_launcher(level, home, readable, (str(seconds), str(kept))))
        return
    with open_filter(_build) as filters:
        command = [*_bubblewrap(own_user=own_user), *_mounts(home.root, readable)]
        options = [word for file in filters for word in ("--seccomp", str(file))]
        yield Start((*command, *options, "--"), filters)


def _launcher(
    level: Level, home: Workspace, readable: Sequence[Path], options: Sequence[str]
) -> tuple[str, ...]:
    command = (str(PYTHON), "-I", "-S", str(_LAUNCHER), *options)
    if level != "landlock":
        return (*command, "", "--")
    readers = (*SYSTEM, str(home.root), *map(str, readable))
    return (*command, str(home.root / "tmp"), *readers, "--")


def _bubblewrap(*, own_user: bool) -> list[str]:
    """Return a command that hides other files, processes and the network."""
    command = [shutil.which("bwrap") or "bwrap", *_NAMESPACES, "--die-with-parent"]
    command += ["--cap-drop", "ALL"]
    if not own_user:
        return [*command, "--unshare-user-try"]
    # A user namespace would hold one user, whom the kernel takes for root outside.
    return [*command, *(word for name in BECOMING_NAMES for word in ("--cap-add", name))]


def _mounts(root: Path, readable: Sequence[Path]) -> list[str]:
    """Return options that show a program what it needs; only ``tmp`` is writable."""
    command = [*system_mounts(SYSTEM), "--remount-ro", "/proc"]
    for path in filter(Path.exists, readable):
        command += ["--ro-bind", str(path), str(path)]
    writable = str(root / "tmp")
    command += ["--dev-bind", "/dev/null", "/dev/null", "--ro-bind", str(root), str(root)]
    # What is mounted nowhere is in memory, where no limit of files counts.
    command += ["--bind", writable, writable, "--remount-ro", "/"]
    return [*command, "--chdir", str(root / "cwd")]


def system_mounts(folders: Iterable[str]) -> Iterator[str]:
    """Yield bubblewrap's options that show folders of the system, and a ``/proc`` of its own.

    Args:
        folders: What to show, as far as it exists, such as `SYSTEM`.
    """
    # Shows only its own processes; the loader needs it to find libraries next to a program.
    yield from ("--proc", "/proc")
    if os.path.exists("/proc/keys"):  # noqa: PTH110 - as below
        yield from ("--ro-bind", "/dev/null", "/proc/keys")
    for folder in filter(os.path.exists, folders):
        if os.path.islink(folder):  # noqa: PTH114 - as below: copies the text of the link
            yield from ("--symlink", os.readlink(folder), folder)  # noqa: PTH115
        else:
            yield from ("--ro-bind", folder, folder)


def _build(machine: str) -> bytes:
    """Build the filter of what namespaces do not hide, such as the session's keyring."""
    return build_filter(machine, files=True, signals=True, truncation=True)


@contextlib.contextmanager
def open_filter(build: Callable[[str], bytes]) -> Iterator[tuple[int, ...]]:
    """Yield a file descriptor of a system call filter, or none on an unknown architecture.

    Args:
        build: Returns the filter for one of `MACHINES`.
    """
    machine = os.uname().machine
    if machine not in MACHINES:
        yield ()
        return
    readable, written = os.pipe()
    try:
        os.write(written, build(machine))
        os.close(written)
        yield (readable,)
    finally:
        os.close(readable)
