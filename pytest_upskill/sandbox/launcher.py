"""Run a program, optionally confined, and kill all of its processes at the end.

Called as a script, ``python -I -S launcher.py SECONDS CAPABILITIES WRITABLE READABLE… -- PROGRAM
ARGUMENT…``, with an open pipe as stdin. The program and its descendants are killed when the program
ends, when the time is up, and when the pipe is written to or closed, which also happens if the
caller dies. With an empty WRITABLE the program is not confined. Otherwise Landlock and seccomp are
applied in the child process, because they cannot be undone; if root starts the program, it keeps
the capabilities whose bits are set in CAPABILITIES.
"""

# The script starts in half the time without pathlib and contextlib.
# ruff: noqa: PTH112, PTH120, PTH123, PTH208, SIM105

from __future__ import annotations

import ctypes
import os
import select
import signal
import sys
import time

TYPE_CHECKING = False  # importing typing takes longer than everything else in the launcher
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any, NoReturn

_PAUSE_S = 0.001

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION = 1
_PATH_BENEATH = 1
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1, 2, 4, 8
_TRUNCATE = 1 << 14
_FIRST_RIGHTS = (1 << 13) - 1
# Rights that later versions of the interface added: rename, truncate, ioctl on devices.
_LATER_RIGHTS = ((2, 1 << 13), (3, _TRUNCATE), (5, 1 << 15))
# Character devices, sockets, named pipes, block devices.
_MAKE_SPECIAL_FILES = 1 << 6 | 1 << 9 | 1 << 10 | 1 << 11
_TCP_SINCE, _SCOPES_SINCE = 4, 6
"""Versions of Landlock that deny TCP, and signals to processes outside."""

_PR_CAPBSET_DROP, _PR_SET_CHILD_SUBREAPER, _PR_SET_NO_NEW_PRIVS = 24, 36, 38
_PR_CAP_AMBIENT, _CLEAR_ALL = 47, 4
_PR_SET_SECCOMP, _FILTER_MODE = 22, 2
_CAPABILITY_VERSION = 0x20080522
_CAPABILITIES = 64
_BYTES_PER_STEP = 8

_libc: Any = ctypes.CDLL(None, use_errno=True) if os.name == "posix" else None


class _PathBeneath(ctypes.Structure):
    _pack_ = 1
    _layout_ = "ms"
    _fields_ = (("allowed", ctypes.c_uint64), ("folder", ctypes.c_int32))


class _Filter(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("steps", ctypes.c_void_p))


def main(arguments: list[str]) -> NoReturn:
    """Run a program and exit with its status."""
    seconds, capabilities, writable, *rest = arguments
    end = rest.index("--")
    readable, program = rest[:end], rest[end + 1 :]
    if sys.platform == "linux":
        # Become the parent of every descendant whose parent exits.
        _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    wakeup = _open_wakeup()
    child = os.fork()
    if child == 0:
        _exec(program, int(capabilities), writable, readable)
    status = _wait(child, wakeup, time.monotonic() + float(seconds))
    # This process is in the group too, so it ends where it kills the group. A confined program
    # cannot leave the group, and no fork can outrun a signal to the group.
    if status is not None or not writable:
        _kill_descendants()
    if status is None:
        os.killpg(0, signal.SIGKILL)
    os._exit(status or 0)


def _exec(
    program: list[str], capabilities: int, writable: str, readable: Iterable[str]
) -> NoReturn:
    """Replace this process by the program."""
    try:
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        # Python ignores both signals, and the program would inherit that.
        for number in (signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        if writable:
            _confine(capabilities, writable, readable)
        os.execv(program[0], program)  # noqa: S606 - to run a program is its purpose
    except OSError as error:
        os.write(2, f"cannot start {program[0]}: {error}\n".encode())
    os._exit(127)


def _confine(capabilities: int, writable: str, readable: Iterable[str]) -> None:
    """Hide files and drop privileges, irreversibly.

    Args:
        capabilities: The set of those to keep, as bits.
        writable: The folder that stays writable.
        readable: Files and folders that stay readable.

    Raises:
        OSError: A system call fails.
    """
    from pytest_upskill.sandbox.seccomp import build_allowlist

    # The version of Landlock that the kernel supports.
    version = _system_call(_CREATE_RULESET, None, ctypes.c_size_t(0), _VERSION)
    _drop_capabilities(capabilities)
    _restrict_files(version, writable, readable)
    _filter_calls(build_allowlist(os.uname().machine, version))


def _drop_capabilities(kept: int = 0) -> None:
    """Drop all capabilities except some, and every way to regain any.

    Args:
        kept: The set of those to keep, as bits; of the first 32 capabilities only.

    Raises:
        OSError: A system call fails.
    """
    if _libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "cannot give up new privileges")
    # Both fail without capabilities, which is fine: none can be gained later.
    for capability in range(_CAPABILITIES):
        if not kept >> capability & 1:
            _libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)
    _libc.prctl(_PR_CAP_AMBIENT, _CLEAR_ALL, 0, 0, 0)
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION, 0)
    if _libc.capset(header, (ctypes.c_uint32 * 6)(kept, kept)):
        raise OSError(ctypes.get_errno(), "cannot drop capabilities")


def _filter_calls(program: bytes) -> None:
    """Apply a filter from `build_allowlist`; `_drop_capabilities` must be called first.

    Raises:
        OSError: A system call fails.
    """
    steps = ctypes.create_string_buffer(program, len(program))
    filter_ = _Filter(len(program) // _BYTES_PER_STEP, ctypes.addressof(steps))
    if _libc.prctl(_PR_SET_SECCOMP, _FILTER_MODE, ctypes.byref(filter_)):
        raise OSError(ctypes.get_errno(), "cannot filter system calls")


def _restrict_files(version: int, writable: str, readable: Iterable[str]) -> None:
    """Hide all files except those under the given paths; deny TCP and signals if supported.

    Args:
        version: The version of Landlock.
        writable: The folder in which files, folders and links may be created.
        readable: Files and folders that may be read and executed.

    Raises:
        OSError: A system call fails.
    """
    rights = _FIRST_RIGHTS | sum(bit for since, bit in _LATER_RIGHTS if version >= since)
    # Of files, TCP and scopes, the size leaves out what the kernel does not know.
    attributes = (ctypes.c_uint64 * 3)(rights, 3, 3)
    size = ctypes.c_size_t(8 * (1 + (version >= _TCP_SINCE) + (version >= _SCOPES_SINCE)))
    ruleset = _system_call(_CREATE_RULESET, ctypes.byref(attributes), size, 0)
    for path in readable:
        _allow(ruleset, path, _EXECUTE | _READ_FILE | _READ_DIR, rights)
    _allow(ruleset, writable, rights & ~_MAKE_SPECIAL_FILES, rights)
    _allow(ruleset, "/dev/null", _READ_FILE | _WRITE_FILE | _TRUNCATE, rights)
    _system_call(_RESTRICT_SELF, ruleset, 0)
    os.close(ruleset)


def _allow(ruleset: int, path: str, allowed: int, known: int) -> None:
    try:
        folder = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return  # a missing path needs no permission
    if not os.path.isdir(path):
        allowed &= _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE
    rule = _PathBeneath(allowed & known, folder)
    _system_call(_ADD_RULE, ruleset, _PATH_BENEATH, ctypes.byref(rule), 0)
    os.close(folder)


def _system_call(number: int, *arguments: object) -> int:
    """Make a system call for which the C library has no function, and return its result.

    Raises:
        OSError: The system call fails.
    """
    result = int(_libc.syscall(number, *arguments))
    if result < 0:
        raise OSError(
            ctypes.get_errno(), f"system call {number}: {os.strerror(ctypes.get_errno())}"
        )
    return result


def _open_wakeup() -> int:
    """Return a file descriptor that becomes readable when a child ends."""
    readable, written = os.pipe()
    os.set_blocking(written, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(written)
    return readable


def _wait(child: int, wakeup: int, deadline: float) -> int | None:
    """Wait for a child, and return its exit status; None if it must be killed."""
    while True:
        ended, status = os.waitpid(-1, os.WNOHANG)
        if ended == child:
            code = os.waitstatus_to_exitcode(status)
            # A shell adds 128 to the number of the signal that ended a program.
            return code if code >= 0 else 128 - code
        if ended:
            continue
        ready, _, _ = select.select([0, wakeup], [], [], max(0.0, deadline - time.monotonic()))
        if wakeup not in ready:
            return None
        os.read(wakeup, 1 << 10)


def _kill_descendants() -> None:
    """Kill all descendants, including those that left the process group or lost their parent."""
    while sys.platform == "linux":
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        # Stop all before killing any, so that none can start another in the meantime.
        stopped: set[int] = set()
        while new := set(descendants(os.getpid())) - stopped:
            _signal(new, signal.SIGSTOP)
            stopped |= new
        _signal(stopped, signal.SIGKILL)
        time.sleep(_PAUSE_S)


def descendants(ancestor: int) -> Iterator[int]:
    """Yield the process ids of all descendants of a process."""
    children: dict[int, list[int]] = {}
    for name in filter(str.isdecimal, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                parent = int(file.read().rpartition(b")")[2].split()[1])
        except OSError:
            continue
        children.setdefault(parent, []).append(int(name))
    pending = children.get(ancestor, [])
    while pending:
        process = pending.pop()
        yield process
        pending += children.get(process, [])


def _signal(processes: set[int], number: int) -> None:
    for process in processes:
        try:
            os.kill(process, number)
        except (ProcessLookupError, PermissionError):
            pass


if __name__ == "__main__":
    # After the standard library, so that no installed module can replace a part of it.
    sys.path.append(os.path.dirname(os.path.dirname(os.path.dirname(__file__))))
    main(sys.argv[1:])
