"""Commands that start a program at each level of the sandbox."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pytest_upskill.sandbox.machine import PYTHON, Level
from pytest_upskill.sandbox.own_user import OWN_USER_CAPABILITIES, OWN_USER_CAPABILITY_NAMES
from pytest_upskill.sandbox.seccomp import build_allowlist
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
        seconds: Wall time after which the launcher kills the program; ignored for ``bwrap``.
        own_user: Whether the program is run by the command from `own_user_command`.

    Yields:
        The command, whose file descriptors are closed at the end.
    """
    if level != "bwrap":
        capabilities = OWN_USER_CAPABILITIES if own_user else 0
        yield Start(_launcher(level, home, readable, (str(seconds), str(capabilities))))
        return
    with open_filter(_namespace_filter) as filters:
        command = [*bubblewrap(own_user=own_user), *_mounts(home.root, readable)]
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


def bubblewrap(*, own_user: bool) -> list[str]:
    """Return a command that hides other files, processes and the network.

    Args:
        own_user: Whether the program is run by the command from `own_user_command`.
    """
    command = [shutil.which("bwrap") or "bwrap", *_NAMESPACES, "--die-with-parent"]
    command += ["--cap-drop", "ALL"]
    if not own_user:
        return [*command, "--unshare-user-try"]
    # Not in a user namespace: its only user would be root to the kernel.
    return [*command, *(word for name in OWN_USER_CAPABILITY_NAMES for word in ("--cap-add", name))]


def _mounts(root: Path, readable: Sequence[Path]) -> list[str]:
    """Return options that show a program what it needs; only ``tmp`` is writable."""
    command = [*system_mounts(SYSTEM)]
    for path in filter(Path.exists, readable):
        command += ["--ro-bind", str(path), str(path)]
    writable = str(root / "tmp")
    command += ["--dev-bind", "/dev/null", "/dev/null", "--ro-bind", str(root), str(root)]
    # All other folders are in memory, where no limit of files counts.
    command += ["--bind", writable, writable, "--remount-ro", "/"]
    return [*command, "--chdir", str(root / "cwd")]


def system_mounts(folders: Iterable[str]) -> Iterator[str]:
    """Yield bubblewrap's options that show folders of the system, read-only, and its own ``/proc``.

    Without that, root's programs could change the settings of the kernel in ``/proc/sys``, as user
    0 of the machine even where a user namespace calls them user 1000.

    Args:
        folders: The folders, such as `SYSTEM`; those that do not exist are left out.
    """
    # Shows only processes of the sandbox; the loader needs it to find libraries near a program.
    yield from ("--proc", "/proc")
    if os.path.exists("/proc/keys"):  # noqa: PTH110 - as below
        yield from ("--ro-bind", "/dev/null", "/proc/keys")
    yield from ("--remount-ro", "/proc")
    for folder in filter(os.path.exists, folders):
        if os.path.islink(folder):  # noqa: PTH114 - as below: copies the text of the link
            yield from ("--symlink", os.readlink(folder), folder)  # noqa: PTH115
        else:
            yield from ("--ro-bind", folder, folder)


def _namespace_filter(machine: str) -> bytes:
    """Return the filter for a program in namespaces, which confine files and signals."""
    return build_allowlist(
        machine, files_confined=True, signals_confined=True, truncation_confined=True
    )


@contextlib.contextmanager
def open_filter(build: Callable[[str], bytes]) -> Iterator[tuple[int, ...]]:
    """Yield the file descriptor of a system call filter, or none on an unknown architecture.

    Args:
        build: Builds the filter for one of `MACHINES`.
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
