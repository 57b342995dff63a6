"""Commands that start a program at each level of the sandbox, and as a user of its own.

The kernel does not limit the number of root's processes, and it knows root in a user namespace too.
So where root runs pytest, `setpriv` (util-linux) starts each program as a user that nothing else
uses. The program keeps one capability, the one to open files whatever their modes say: a toolchain
may lie in root's own folder, and the level of the sandbox decides what can be opened.
"""

import contextlib
import errno
import os
import shutil
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from pytest_upskill.sandbox.limits import Level, entries_below
from pytest_upskill.sandbox.seccomp import MACHINES, build_allowlist

PYTHON = Path(sys.executable).resolve()
"""Not the link in a virtual environment, whose folder a sandbox may not show."""

PYTHON_FOLDERS = tuple(
    dict.fromkeys(Path(prefix).resolve() for prefix in (sys.base_prefix, sys.base_exec_prefix))
)
"""The folders that it needs to read."""

SYSTEM = (
    "/usr",
    "/bin",
    "/lib",
    "/lib32",
    "/lib64",
    "/nix/store",
    "/etc/alternatives",
    "/etc/ld.so.cache",
    # Certificates, and what links to them; /etc/ssl has private keys too.
    "/etc/pki/ca-trust/extracted",
    "/etc/pki/tls/certs",
    "/etc/ca-certificates/extracted",
    "/etc/ssl/certs",
    "/etc/ssl/cert.pem",
)
DEVICES = ("/dev/random", "/dev/urandom", "/dev/zero")
"""Devices that every program may read."""
_TOOLS = ("rg",)
"""Programs of agents that people install outside the system's folders."""
_LAUNCHER = Path(__file__).with_name("launcher.py")
_CAPABILITIES = {"CAP_DAC_OVERRIDE": 1, "CAP_SETGID": 6, "CAP_SETUID": 7, "CAP_SETPCAP": 8}
"""Capabilities that the command needs inside the sandbox, with their numbers."""
_INSIDE = sum(1 << number for number in _CAPABILITIES.values())
_OUTSIDE = _INSIDE | 1 << 0 | 1 << 3 | 1 << 5  # CHOWN, FOWNER, KILL
_ALL_USERS = ["0", "0", "4294967295"]
"""The map of user ids outside of any user namespace."""
_FIRST_USER = 1 << 30
"""The first of the user ids that distributions, containers and networks do not use."""


@contextlib.contextmanager
def confined(
    level: Level,
    root: Path,
    readable: Sequence[Path],
    seconds: float,
    *,
    own_user: bool,
    places: Mapping[str, str],
) -> Iterator[tuple[Sequence[str], Sequence[int]]]:
    """Prepare the start of a program.

    Args:
        level: The level of the sandbox, not ``auto``.
        root: The root of the program's workspace.
        readable: Folders that it may read besides the system's.
        seconds: Wall time after which the launcher kills the program; ignored for ``bwrap``.
        own_user: Whether the program is run by the command from `own_user_command`.
        places: Where it sees folders below the root of the workspace too, at the level ``bwrap``.

    Yields:
        The command, to put before the program's own, and the file descriptors that it must
        inherit, which are closed at the end.
    """
    if level == "bwrap":
        with open_filter(build_allowlist) as filters:
            command = [*bubblewrap(filters, own_user=own_user), *_mounts(root, readable, places)]
            yield (*command, "--"), filters
        return
    command = [str(PYTHON), "-I", "-S", str(_LAUNCHER), str(seconds), str(_INSIDE * own_user)]
    shown: Sequence[object] = [""]
    if level == "landlock":
        shown = [root / "tmp", *SYSTEM, *DEVICES, root, *readable]
    yield (*command, *map(str, shown), "--"), ()


def bubblewrap(filters: Iterable[int], *, own_user: bool) -> list[str]:
    """Return a command that hides other files, processes and the network.

    Args:
        filters: File descriptors of filters of system calls.
        own_user: Whether the program is run by the command from `own_user_command`.
    """
    command = [shutil.which("bwrap") or "bwrap", "--die-with-parent", "--cap-drop", "ALL"]
    command += ["--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts"]
    command.append("--unshare-cgroup-try")
    command += [word for file in filters for word in ("--seccomp", str(file))]
    if not own_user:
        return [*command, "--unshare-user-try"]
    # Not in a user namespace: its only user would be root to the kernel.
    return [*command, *(word for name in _CAPABILITIES for word in ("--cap-add", name))]


def _mounts(root: Path, readable: Sequence[Path], places: Mapping[str, str]) -> list[str]:
    """Return options that show a program what it needs; only ``tmp`` is writable."""
    devices = [("--dev-bind-try", each, each) for each in ("/dev/null", *DEVICES)]
    shown = {str(path): path for path in (*filter(Path.exists, readable), root)}
    writable = {str(root / "tmp"): root / "tmp"}
    writable |= {place: root / folder for folder, place in places.items()}
    command = mounts(shown, writable, [word for words in devices for word in words])
    return [*command, "--chdir", str(root / "cwd")]


def mounts(
    shown: Mapping[str, Path], writable: Mapping[str, Path], devices: Iterable[str]
) -> list[str]:
    """Return bubblewrap's options that show a program the system, and what it needs besides.

    Args:
        shown: What it may read: the place where it sees each file or folder.
        writable: What it may write, likewise.
        devices: Options that show it devices.

    Raises:
        OSError: An earlier program has put a link in place of a folder that may be written.
    """
    command = [*_system_mounts(), *devices]
    for place, path in shown.items():
        command += ["--ro-bind", str(path), place]
    for place, path in writable.items():
        if path.is_symlink():
            raise OSError(errno.ELOOP, f"{path.name} was replaced by a link")
        command += ["--bind", str(path), place]
    # All other folders are in memory, where no limit of files counts.
    return [*command, "--remount-ro", "/"]


def _system_mounts() -> Iterator[str]:
    """Yield options that show the folders of the system, read-only, and an own ``/proc``.

    Without that, root's programs could change the settings of the kernel in ``/proc/sys``, as user
    0 of the machine even where a user namespace calls them user 1000.
    """
    # Shows only processes of the sandbox; the loader needs it to find libraries near a program.
    yield from ("--proc", "/proc")
    if os.path.exists("/proc/keys"):  # noqa: PTH110 - as below
        yield from ("--ro-bind", "/dev/null", "/proc/keys")
    yield from ("--remount-ro", "/proc")
    for folder in filter(os.path.exists, SYSTEM):
        if os.path.islink(folder):  # noqa: PTH114 - as below: copies the text of the link
            yield from ("--symlink", os.readlink(folder), folder)  # noqa: PTH115
        else:
            yield from ("--ro-bind", folder, folder)


def homes_of(programs: Iterable[Path]) -> tuple[Path, ...]:
    """Return the folders of installed programs, such as ``/opt/gcc`` for ``/opt/gcc/bin/gcc``.

    The user's home folder and its parents are left out: a compiler in ``~/bin`` must not make
    them readable in the sandbox.
    """
    user = Path(os.path.expanduser("~")).resolve()  # noqa: PTH111 - Path.home() may raise
    folders = {
        folder
        for program in programs
        for path in (program, program.resolve())
        if (folder := path.parent.parent) not in {user, *user.parents}
    }
    return tuple(sorted(folders))


def tools() -> tuple[Path, ...]:
    """Return the programs among `_TOOLS` that are installed, but not in the system's folders."""
    found = (Path(path).resolve() for name in _TOOLS if (path := shutil.which(name)))
    return tuple(path for path in found if not any(map(path.is_relative_to, SYSTEM)))


def search_path(found: Iterable[Path]) -> tuple[Path, ...]:
    """Return where programs are looked for: the system, Python, and the folders of ``found``."""
    system = map(Path, ("/usr/local/bin", "/usr/bin", "/bin"))
    return (*system, PYTHON.parent, *(tool.parent for tool in found))


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


def can_change_user() -> bool:
    """Return whether this process can start and kill programs as other users."""
    if sys.platform != "linux" or os.getuid() != 0 or shutil.which("setpriv") is None:
        return False
    with contextlib.suppress(OSError):
        lines = Path("/proc/self/status").read_text("ascii").splitlines()
        effective = int(next(line for line in lines if line.startswith("CapEff:")).split()[1], 16)
        users = Path("/proc/self/uid_map").read_text("ascii").split()
        return users == _ALL_USERS and effective & _OUTSIDE == _OUTSIDE
    return False


def own_user_id(root: Path) -> int:
    """Return the user of all programs in one workspace, so that each can use the others' files.

    Args:
        root: The root of the workspace.
    """
    return _FIRST_USER + zlib.crc32(root.name.encode()) % _FIRST_USER


def own_user_command(root: Path, writable: Iterable[Path]) -> list[str]:
    """Return the command, to put before another, that runs it as the workspace's own user.

    Args:
        root: The root of the workspace.
        writable: The folders that programs may write; the user becomes the owner of all in them.
    """
    user = own_user_id(root)
    for folder in writable:
        for path in (folder, *(Path(entry.path) for entry in entries_below(str(folder)))):
            with contextlib.suppress(OSError):
                if path.lstat().st_uid != user:
                    os.lchown(path, user, user)
    kept = "-all,+dac_override"
    options = [f"--reuid={user}", f"--regid={user}", "--clear-groups", "--no-new-privs"]
    # Without this bit, `access`, which compilers call, would ignore the kept capability.
    options += ["--securebits=+no_setuid_fixup", f"--inh-caps={kept}", f"--ambient-caps={kept}"]
    return [shutil.which("setpriv") or "setpriv", *options]
