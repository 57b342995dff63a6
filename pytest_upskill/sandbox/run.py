"""Run a program on input that nobody trusts.

Every level but ``off`` sets limits; ``landlock`` and ``bwrap`` also hide all files that the program
does not need. At all levels the environment is built from nothing, stdin is closed, the wall
clock and the amount of output are limited, and the whole process group is killed at the end.
"""

from __future__ import annotations

import contextlib
import os
import re
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pytest_upskill.sandbox.confinement import confined
from pytest_upskill.sandbox.cores import cores
from pytest_upskill.sandbox.levels import Level
from pytest_upskill.sandbox.workspace import Usage, Workspace, remove_leftovers, workspace

Ended = Literal["exited", "timeout", "output", "files", "stopped"]

# A limit that a system lacks is not set. `-u` is bash's and `-p` dash's name of one limit.
_WITH_LIMITS = """
{ ulimit -c 0; ulimit -t "$1"; ulimit -v "$2"; ulimit -f "$3"; ulimit -n "$4"
  ulimit -u "$5" || ulimit -p "$5"; } 2>/dev/null
shift 5
exec "$@"
"""
_PROBE = '(: > "$TMPDIR/probe") && ! read -r line < "$1" && exit 7'
_PROBE_WORKED = 7
_PAUSE_S = 0.1
_GRACE_S = 5.0
"""How long a launcher may take to kill what it has started."""
_UNPRINTABLE = re.compile(
    r"\x1b\[[0-9;?]*[ -/]*[@-~]"
    "|[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ufffe\uffff\ud800-\udfff]"
)


class SandboxError(Exception):
    """A program cannot be run at the level asked for; the message is one line with the cure."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one program may use."""

    wall_s: float = 60.0
    cpu_s: int = 60
    memory_bytes: int = 4 << 30
    """Address space of each process."""
    file_bytes: int = 64 << 20
    """Size of each file."""
    folder_bytes: int = 1 << 30
    """Of all files that it leaves in its folder; more kills the program soon."""
    files: int = 20_000
    """How many files and folders it leaves there."""
    output_bytes: int = 256 << 10
    """Of stdout and stderr together; more of it kills the program."""
    open_files: int = 256
    processes: int = 128
    """How many it may add; the kernel holds root to no such limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a program ended."""

    ended: Ended
    """By itself, at the wall clock, at the limit of output or of files, by `Sandbox.close`."""
    returncode: int
    """As `subprocess` has it: below 0 after a signal."""
    output: str
    """Stdout and stderr as they came, without control characters; paths start at the workspace."""

    @property
    def succeeded(self) -> bool:
        """Whether it ended by itself, and well."""
        return self.ended == "exited" and self.returncode == 0


class Sandbox:
    """Runs programs at one level, from any thread.

    Attributes:
        level: The level in use, never ``auto``.
    """

    def __init__(self, level: Level = "auto") -> None:
        """Settle on a level by trying it.

        Raises:
            SandboxError: The level does not work on this machine.
        """
        self._running: set[subprocess.Popen[bytes]] = set()
        self._lock = threading.Lock()
        self._closed = False
        if os.name == "posix":
            remove_leftovers()
        wanted: tuple[Level, ...] = ("bwrap", "landlock", "limits") if level == "auto" else (level,)
        for self.level in wanted:
            if self._works():
                return
        raise SandboxError(
            f"sandbox level {level!r} does not work on this machine: "
            "use --upskill-sandbox auto for the strongest that does"
        )

    def run(
        self,
        program: Sequence[str],
        home: Workspace,
        *,
        readable: Sequence[Path] = (),
        path: Sequence[Path] = (),
        limits: Limits = Limits(),
    ) -> Outcome:
        """Run ``program`` in ``home`` until it ends or a limit ends it.

        Args:
            program: An absolute path and its arguments.
            home: Where it works.
            readable: Folders it needs besides the system's own.
            path: Folders of ``PATH`` before the system's own.
            limits: What it may use.

        Raises:
            SandboxError: It cannot be started.
        """
        try:
            Path(program[0]).stat()
            with confined(self.level, home, readable, limits.wall_s + _GRACE_S) as start:
                process = subprocess.Popen(  # noqa: S603 - confining it is what this is for
                    [*start.command, *self._limit(limits), *program],
                    cwd=home.root / "cwd",
                    env=_environment(home, path),
                    stdin=subprocess.DEVNULL if self.level == "bwrap" else subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                    pass_fds=start.files,
                )
        except OSError as error:
            raise SandboxError(f"cannot start {program[0]}: {error.strerror}") from None
        with process, self._killed_at_close(process):
            ended, output = _watch(process, limits, Usage(home.root / "tmp"))
        return Outcome(
            ended="stopped" if self._closed else ended,
            returncode=process.returncode,
            output=printable(output.decode("utf-8", "replace").replace(f"{home.root}/", "")),
        )

    def close(self) -> None:
        """Kill what is running, and all that is started from now on."""
        with self._lock:
            self._closed = True
            for process in self._running:
                _end(process)

    @contextlib.contextmanager
    def _killed_at_close(self, process: subprocess.Popen[bytes]) -> Iterator[None]:
        """Kill a program and its children when the block ends, or at `close` if that is first."""
        with self._lock:
            self._running.add(process)
            if self._closed:
                _end(process)
        try:
            yield
        finally:
            _end(process)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_GRACE_S)
            _kill_group(process.pid)
            with self._lock:
                self._running.discard(process)

    def _works(self) -> bool:
        """Try the level: the sandbox starts, forks and writes, and a stranger's file is hidden."""
        if self.level in {"limits", "off"}:
            return os.name == "posix"
        if sys.platform != "linux" or (self.level == "bwrap" and not shutil.which("bwrap")):
            return False
        with workspace() as home, tempfile.NamedTemporaryFile() as strange:
            strange.write(b"hidden\n")
            strange.flush()
            try:
                probe = self.run(["/bin/sh", "-c", _PROBE, "sh", strange.name], home)
            except SandboxError:
                return False
        return probe.returncode == _PROBE_WORKED

    def _limit(self, limits: Limits) -> list[str]:
        if self.level == "off":
            return []
        values = (
            limits.cpu_s,
            limits.memory_bytes >> 10,
            limits.file_bytes >> 9,
            limits.open_files,
            # In a user namespace, as bwrap makes, only the program's own processes count.
            limits.processes if self.level == "bwrap" else _processes_of_user(limits),
        )
        return ["/bin/sh", "-c", _WITH_LIMITS, "sh", *map(str, values)]


def printable(text: str) -> str:
    """Replace what could steer a terminal, reverse text, or has no place in XML."""
    return _UNPRINTABLE.sub("\ufffd", text.replace("\r\n", "\n"))


def _environment(home: Workspace, path: Sequence[Path]) -> dict[str, str]:
    return {
        "PATH": os.pathsep.join([*map(str, path), "/usr/bin", "/bin"]),
        "LC_ALL": "C",
        "HOME": str(home.root / "tmp"),
        "TMPDIR": str(home.root / "tmp"),
        "SOURCE_DATE_EPOCH": "0",
    }


def _watch(process: subprocess.Popen[bytes], limits: Limits, usage: Usage) -> tuple[Ended, bytes]:
    """Read what it prints until it ends or is to be ended."""
    deadline = time.monotonic() + limits.wall_s
    output = bytearray()
    assert process.stdout is not None
    with process.stdout as stdout, selectors.DefaultSelector() as selector:
        selector.register(stdout, selectors.EVENT_READ)
        while (left := deadline - time.monotonic()) > 0:
            # Before looking: all that it printed is there then, however late this thread looks.
            ended = process.poll() is not None
            if usage.is_beyond(limits.folder_bytes, limits.files):
                return "files", bytes(output)
            if not selector.select(0 if ended else min(left, _PAUSE_S)):
                # A child that left the group would keep the pipe open for as long as it likes.
                if ended:
                    break
                continue
            chunk = os.read(stdout.fileno(), 1 << 16)
            output += chunk
            if len(output) > limits.output_bytes:
                return "output", bytes(output[: limits.output_bytes])
            if not chunk:
                break
    try:
        process.wait(max(0.0, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        return "timeout", bytes(output)
    return "exited", bytes(output)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Have a program and its children killed: by its launcher, which finds them all, else here."""
    if process.stdin is None:
        _kill_group(process.pid)
        return
    with contextlib.suppress(OSError, ValueError):
        # A process that pytest forked may hold the pipe open: closing it would not do.
        os.write(process.stdin.fileno(), b"x")


def _kill_group(group: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


def _processes_of_user(limits: Limits) -> int | str:
    """Tell how many threads all of a user's programs may have: the kernel counts them together."""
    count = 0
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if process.stat().st_uid == os.getuid():
                count += len(os.listdir(process / "task"))  # noqa: PTH208 - counts, needs no paths
    # As many of ours run at a time as there are cores. Where nobody counts, as on macOS, a limit
    # could be one that the user is beyond already.
    return count + limits.processes * cores() if count else "unlimited"
