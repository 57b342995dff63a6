"""Run a program on untrusted input.

Every level but ``off`` sets resource limits; ``landlock`` and ``bwrap`` also hide all files that
the program does not need. At every level, no environment variables are inherited, stdin is empty,
wall time and output are limited, and the process group is killed at the end.
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
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from pytest_upskill.sandbox.confinement import can_change_user, confined, own_user_command
from pytest_upskill.sandbox.limits import Level, Limits, Usage, limit_command

Ended = Literal["exited", "time", "output", "files", "stopped"]

_DEFAULT_LIMITS = Limits()
_PROBE = '(: > "$TMPDIR/probe") && ! read -r line < "$1" && exit 7'
"""Exits with 7, as nothing else does, if it can write its folder and not read the file ``$1``."""
_PROBE_WORKED = 7
_PAUSE_S = 0.05
"""Maximum seconds between two checks of whether a program has ended."""
_GRACE_S = 5.0
"""Seconds that a launcher may take to kill its descendants."""
_UNPRINTABLE = re.compile(
    r"\x1b\[[0-9;?]*[ -/]*[@-~]"
    "|[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ufffe\uffff\ud800-\udfff]"
)


class SandboxError(Exception):
    """A program that cannot run at the requested level; the message says in one line what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a program ended."""

    ended: Ended
    """By itself, by a limit of time, output or files, or by `Sandbox.close`."""
    returncode: int
    """Exit status as in `subprocess`, negative after a signal."""
    output: str
    """Stdout and stderr, without control characters, with paths relative to the workspace."""

    @property
    def succeeded(self) -> bool:
        """Whether it ended by itself with exit status 0."""
        return self.ended == "exited" and self.returncode == 0

    @property
    def how(self) -> str:
        """How it ended, in words for whoever wrote or called it."""
        if self.ended == "exited":
            return f"exit status {self.returncode}"
        return "stopped" if self.ended == "stopped" else f"stopped at a limit of {self.ended}"


class Sandbox:
    """A sandbox at one level; safe to use from any thread.

    Attributes:
        level: The level in use, never ``auto``.
        own_user: Whether each program runs as a user that nothing else uses.
    """

    def __init__(self, level: Level = "auto") -> None:
        """Test the level.

        Args:
            level: The level; ``auto`` for the strongest that works.

        Raises:
            SandboxError: The level does not work on this machine.
        """
        self._running: set[subprocess.Popen[bytes]] = set()
        self._lock = threading.Lock()
        self._closed = False
        for candidate in _candidates(level):
            self.level, self.own_user = candidate
            # Runs a program as this candidate does.
            if self._works():
                return
        cure = "use Linux or macOS" if level == "auto" else "use --upskill-sandbox auto"
        raise SandboxError(f"sandbox level {level!r} does not work on this machine: {cure}")

    @property
    def hides_files(self) -> bool:
        """Whether programs see only the files that they need, and no network."""
        return self.level in {"bwrap", "landlock"}

    def run(
        self,
        program: Sequence[str],
        home: Workspace,
        *,
        readable: Sequence[Path] = (),
        path: Sequence[Path] = (),
        limits: Limits = _DEFAULT_LIMITS,
        files: Sequence[int] = (),
        places: Mapping[str, str] = MappingProxyType({}),
    ) -> Outcome:
        """Run a program in a workspace until it ends or reaches a limit.

        Args:
            program: The absolute path of the program, and its arguments.
            home: The workspace.
            readable: Folders that it may read besides the system's.
            path: Folders to put on ``PATH`` before the system's.
            limits: Its resource limits.
            files: File descriptors that it inherits.
            places: Where it sees folders below the root of the workspace too, at the level
                ``bwrap``.

        Raises:
            SandboxError: The program cannot be started.
        """
        try:
            Path(program[0]).stat()
            seconds = limits.wall_s + _GRACE_S
            as_own_user = own_user_command(home.root, [home.root / "tmp"]) if self.own_user else []
            # With its own user or namespace, only the program's own processes count.
            alone = self.own_user or self.level == "bwrap"
            limited = [] if self.level == "off" else limit_command(limits, is_counted_alone=alone)
            with confined(
                self.level, home.root, readable, seconds, own_user=self.own_user, places=places
            ) as (start, inherited):
                process = subprocess.Popen(  # noqa: S603 - it is confined
                    [*start, *as_own_user, *limited, *program],
                    cwd=home.root / "cwd",
                    env=_environment(home, path),
                    stdin=subprocess.DEVNULL if self.level == "bwrap" else subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                    pass_fds=(*inherited, *files),
                )
        except OSError as error:
            raise SandboxError(f"cannot start {program[0]}: {error.strerror}") from None
        with process, self._killed_at_close(process):
            ended, output = _watch(process, limits, home.root / "tmp")
        return Outcome(
            ended="stopped" if self._closed else ended,
            returncode=process.returncode,
            output=printable(output.decode("utf-8", "replace").replace(f"{home.root}/", "")),
        )

    def close(self) -> None:
        """Kill all running programs, and every program that is started later."""
        with self._lock:
            self._closed = True
            for process in self._running:
                _stop(process)

    @contextlib.contextmanager
    def _killed_at_close(self, process: subprocess.Popen[bytes]) -> Iterator[None]:
        """Kill a program and its children at the end of the block, or earlier at `close`."""
        with self._lock:
            self._running.add(process)
            if self._closed:
                _stop(process)
        try:
            yield
        finally:
            _stop(process)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_GRACE_S)
            _kill_group(process.pid)
            with self._lock:
                self._running.discard(process)

    def _works(self) -> bool:
        """Return whether a program at this level can fork and write, and cannot see other files."""
        if os.name != "posix":
            return False
        if self.level == "off" or (self.level == "limits" and not self.own_user):
            return True
        if sys.platform != "linux" or (self.level == "bwrap" and not shutil.which("bwrap")):
            return False
        with workspace() as home, tempfile.NamedTemporaryFile() as other_file:
            other_file.write(b"hidden\n")
            other_file.flush()
            unreadable = other_file.name if self.hides_files else "/nowhere"
            try:
                probe = self.run(["/bin/sh", "-c", _PROBE, "sh", unreadable], home)
            except SandboxError:
                return False
        return probe.returncode == _PROBE_WORKED


def _candidates(level: Level) -> Iterator[tuple[Level, bool]]:
    """Yield what to try, the strongest first: a level, and whether a program gets its own user."""
    levels: tuple[Level, ...] = ("bwrap", "landlock", "limits") if level == "auto" else (level,)
    for candidate in levels:
        if candidate != "off" and can_change_user():
            yield candidate, True
        yield candidate, False


def find_program(*names: str) -> Path | None:
    """Return the path of the first of some programs that is on ``PATH``, None if none is."""
    found = next(filter(None, map(shutil.which, names)), None)
    return Path(found).absolute() if found else None


def run_trusted(program: Path, *arguments: str) -> str:
    """Return what a program of the user's prints outside the sandbox, "" if it fails to run.

    It must not read any part of an answer. It has 30 seconds, and an empty home folder.
    """
    with tempfile.TemporaryDirectory(prefix="upskill-home-") as home:
        try:
            process = subprocess.run(  # noqa: S603  the user's own program
                [program, *arguments],
                env={"PATH": f"{program.parent}:/usr/bin:/bin", "HOME": home, "LC_ALL": "C.UTF-8"},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=30,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired):
            return ""
    return (process.stdout + process.stderr).decode("utf-8", "replace")


def printable(text: str) -> str:
    """Replace terminal escapes, bidirectional controls and characters that XML forbids."""
    return _UNPRINTABLE.sub("\ufffd", text.replace("\r\n", "\n"))


def _environment(home: Workspace, path: Sequence[Path]) -> dict[str, str]:
    return {
        "PATH": os.pathsep.join([*map(str, path), "/usr/bin", "/bin"]),
        "LC_ALL": "C",
        "HOME": str(home.root / "tmp"),
        "TMPDIR": str(home.root / "tmp"),
        "SOURCE_DATE_EPOCH": "0",
    }


def _watch(process: subprocess.Popen[bytes], limits: Limits, tmp: Path) -> tuple[Ended, bytes]:
    """Read the output of a program until it ends or reaches a limit.

    Returns:
        Why reading has ended, and the output.
    """
    usage = Usage(tmp, process.pid, limits.folder_bytes, limits.files)
    deadline = time.monotonic() + limits.wall_s
    output = bytearray()
    assert process.stdout is not None
    with process.stdout as stdout, selectors.DefaultSelector() as selector:
        selector.register(stdout, selectors.EVENT_READ)
        while (left_s := deadline - time.monotonic()) > 0:
            # Poll before reading: if it has ended, all of its output is in the pipe by now.
            ended = process.poll() is not None
            if usage.is_beyond():
                return "files", bytes(output)
            readable = selector.select(0 if ended else min(left_s, _PAUSE_S, usage.due_in_s))
            chunk = os.read(stdout.fileno(), 1 << 16) if readable else b""
            output += chunk
            if len(output) > limits.output_bytes:
                return "output", bytes(output[: limits.output_bytes])
            # A child that left the group may keep the pipe open.
            if ended and not chunk:
                return "exited", bytes(output)
            if readable and not chunk:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(min(left_s, _PAUSE_S))
    return "time", bytes(output)


def _stop(process: subprocess.Popen[bytes]) -> None:
    """Kill a program and its children through its launcher, or directly if it has none."""
    if process.stdin is None:
        _kill_group(process.pid)
        return
    with contextlib.suppress(OSError, ValueError):
        # Closing the pipe is not enough: a process that pytest forked may keep it open.
        os.write(process.stdin.fileno(), b"x")


def _kill_group(group: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


@dataclass(frozen=True, slots=True)
class Workspace:
    """A folder for the input and the output of a program."""

    root: Path

    def write(self, name: str, text: str) -> str:
        """Create a file below the root.

        Args:
            name: A relative path, as validated by `relative_path`.
            text: The content.

        Returns:
            The path as the program sees it, relative to ``cwd``.

        Raises:
            OSError: The file exists, or one of its parent folders is a file.
        """
        return self.write_bytes(name, text.encode("utf-8", "replace"))

    def write_bytes(self, name: str, content: bytes) -> str:
        """Create a file below the root from bytes; otherwise like `write`."""
        target = self.root / name
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("xb") as file:
            file.write(content)
        return f"../{name}"


@contextlib.contextmanager
def workspace() -> Iterator[Workspace]:
    """Make a workspace with an empty ``cwd``, where programs start, and ``tmp``, where they write.

    It is removed at the end.
    """
    root = Path(tempfile.mkdtemp(prefix="pytest-upskill-sandbox-")).resolve()
    try:
        (root / "cwd").mkdir()
        (root / "tmp").mkdir()
        yield Workspace(root)
    finally:
        _remove(root)


def _remove(root: Path) -> None:
    """Remove a workspace, even if a program has made it deep or unreadable."""
    with contextlib.suppress(OSError, RecursionError):
        shutil.rmtree(root)
    if root.exists():
        # Python stops where it may not read, and at what is deeper than it can recurse.
        for command in (("chmod", "-R", "u+rwx"), ("rm", "-rf")):
            subprocess.run([*command, "--", root], stderr=subprocess.DEVNULL, check=False)  # noqa: S603  no program writes this name
