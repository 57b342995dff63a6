"""Run a program, confined if asked for, and let nothing of it outlive the caller.

Called as a script, ``python -I -S launcher.py SECONDS WRITABLE READABLE… -- PROGRAM ARGUMENT…``,
with an open pipe as stdin. The program and all that it starts are killed when it ends, when the
time is up, and when the pipe is written to or closes, as it does when the caller dies, however.
With an empty WRITABLE the program is not confined; else Landlock and seccomp are applied here, in a
process of its own, because they cannot be taken off again.
"""

# The script starts in half the time without pathlib and contextlib.
# ruff: noqa: PTH120, PTH123, PTH208, SIM105

from __future__ import annotations

import os
import select
import signal
import sys
import time

TYPE_CHECKING = False  # importing typing takes longer than all else that the launcher does
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import NoReturn

_SIGNALLED = 128  # what a shell adds to the number of the signal that ended a program
_CANNOT_START = 127
_PAUSE_S = 0.001


def main(arguments: list[str]) -> NoReturn:
    """Run a program and exit as it does."""
    seconds, writable, *rest = arguments
    end = rest.index("--")
    readable, program = rest[:end], rest[end + 1 :]
    if sys.platform == "linux":
        from pytest_upskill.sandbox.privileges import adopt_orphans

        adopt_orphans()
    awake = _woken_by_children()
    child = os.fork()
    if child == 0:
        _become(program, writable, readable)
    code = _wait(child, awake, time.monotonic() + float(seconds))
    if code is None and writable:
        # What is confined cannot leave the group, and no fork is faster than a signal to all of it.
        os.killpg(0, signal.SIGKILL)
    _kill_descendants()
    if code is None:
        os.killpg(0, signal.SIGKILL)
    os._exit(code or 0)


def _become(program: list[str], writable: str, readable: Sequence[str]) -> NoReturn:
    """Turn into the program."""
    try:
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        # Python ignores both, and a program would inherit that.
        for number in (signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        if writable:
            _confine(writable, readable)
        os.execv(program[0], program)  # noqa: S606 - to run a program is its purpose
    except OSError as error:
        os.write(2, f"cannot start {program[0]}: {error}\n".encode())
    os._exit(_CANNOT_START)


def _confine(writable: str, readable: Sequence[str]) -> None:
    from pytest_upskill.sandbox import landlock, privileges, seccomp

    version = landlock.abi()
    privileges.drop_capabilities()
    landlock.restrict(version, writable, readable)
    calls = seccomp.build_filter(
        os.uname().machine,
        files=False,
        signals=landlock.keeps_signals_in(version),
        truncation=landlock.keeps_truncation_in(version),
    )
    privileges.filter_calls(calls)


def _woken_by_children() -> int:
    """Return a file descriptor that can be read once a child has ended."""
    readable, written = os.pipe()
    os.set_blocking(written, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(written)
    return readable


def _wait(child: int, awake: int, deadline: float) -> int | None:
    """Return the exit status of a child, None if it is to be killed first."""
    while True:
        ended, status = os.waitpid(-1, os.WNOHANG)
        if ended == child:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else _SIGNALLED - code
        if ended:
            continue
        ready, _, _ = select.select([0, awake], [], [], max(0.0, deadline - time.monotonic()))
        if awake not in ready:
            return None
        os.read(awake, 1 << 10)


def _kill_descendants() -> None:
    """Kill all that is left of the program, also what has left its group or lost its parent."""
    while sys.platform == "linux" and _has_children():
        # All stand still before the first dies: none starts another in the meantime.
        stopped: set[int] = set()
        while new := set(_descendants()) - stopped:
            for process in new:
                _signal(process, signal.SIGSTOP)
            stopped |= new
        for process in stopped:
            _signal(process, signal.SIGKILL)
        time.sleep(_PAUSE_S)


def _has_children() -> bool:
    """Forget the children that have ended; return whether there are others."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return False
    return True


def _descendants() -> Iterator[int]:
    """Find the children of this process, and theirs."""
    children: dict[int, list[int]] = {}
    for name in filter(str.isdecimal, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                parent = int(file.read().rpartition(b")")[2].split()[1])
        except OSError:
            continue
        children.setdefault(parent, []).append(int(name))
    pending = children.get(os.getpid(), [])
    while pending:
        process = pending.pop()
        yield process
        pending += children.get(process, [])


def _signal(process: int, number: int) -> None:
    try:
        os.kill(process, number)
    except (ProcessLookupError, PermissionError):
        pass


if __name__ == "__main__":
    # Behind the standard library: nothing installed may stand in for a part of it.
    sys.path.append(os.path.dirname(os.path.dirname(os.path.dirname(__file__))))
    main(sys.argv[1:])
