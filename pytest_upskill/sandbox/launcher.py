"""Run a program, optionally confined, and kill all of its processes at the end.

Called as a script, ``python -I -S launcher.py SECONDS CAPABILITIES WRITABLE READABLE… -- PROGRAM
ARGUMENT…``, with an open pipe as stdin. The program and its descendants are killed when the program
ends, when the time is up, and when the pipe is written to or closed, which also happens if the
caller dies. With an empty WRITABLE the program is not confined. Otherwise Landlock and seccomp are
applied in the child process, because they cannot be undone; if root starts the program, it keeps
the capabilities whose bits are set in CAPABILITIES.
"""

# The script starts in half the time without pathlib and contextlib.
# ruff: noqa: PTH120, PTH123, PTH208, SIM105

from __future__ import annotations

import os
import select
import signal
import sys
import time

TYPE_CHECKING = False  # importing typing takes longer than everything else in the launcher
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import NoReturn

_SIGNALLED = 128  # what a shell adds to the number of the signal that ended a program
_CANNOT_START = 127
_PAUSE_S = 0.001


def main(arguments: list[str]) -> NoReturn:
    """Run a program and exit with its status."""
    seconds, capabilities, writable, *rest = arguments
    end = rest.index("--")
    readable, program = rest[:end], rest[end + 1 :]
    if sys.platform == "linux":
        from pytest_upskill.sandbox.privileges import adopt_orphans

        adopt_orphans()
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
    program: list[str], capabilities: int, writable: str, readable: Sequence[str]
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
    os._exit(_CANNOT_START)


def _confine(capabilities: int, writable: str, readable: Sequence[str]) -> None:
    """Hide files and drop privileges, irreversibly.

    Args:
        capabilities: The set of those to keep, as bits.
        writable: The folder that stays writable.
        readable: Files and folders that stay readable.

    Raises:
        OSError: A system call fails.
    """
    from pytest_upskill.sandbox import privileges, seccomp

    version = privileges.landlock_version()
    privileges.drop_capabilities(capabilities)
    privileges.restrict_files(version, writable, readable)
    privileges.filter_calls(seccomp.build_allowlist(os.uname().machine, version))


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
            return code if code >= 0 else _SIGNALLED - code
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
