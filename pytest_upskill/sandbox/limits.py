"""The levels of the sandbox, and the limits of the resources of a program in it.

The kernel holds those that `limit_command` sets, `Usage` measures the disk, and `Sandbox.run`
watches time and output.
"""

import contextlib
import math
import os
import stat
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pytest_upskill.sandbox.launcher import descendants

Level = Literal["auto", "bwrap", "landlock", "limits", "off"]
"""Values of ``--upskill-sandbox``; ``auto`` is the strongest level that works here."""

# Limits that the system does not support are skipped. The limit of processes is `-u` in bash and
# `-p` in dash.
_WITH_LIMITS = """
{ ulimit -c 0; ulimit -t "$1"; ulimit -v "$2"; ulimit -f "$3"; ulimit -n "$4"
  ulimit -u "$5" || ulimit -p "$5"; } 2>/dev/null
shift 5
exec "$@"
"""


def cores() -> int:
    """Return the number of processors that this process may use; on macOS, of all processors."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Resource limits of one program."""

    wall_s: float = 60.0
    """Wall time in seconds."""
    cpu_s: int = 60
    """CPU time of each process in seconds."""
    memory_bytes: int = 4 << 30
    """Address space of each process."""
    file_bytes: int = 64 << 20
    """Size of each file."""
    folder_bytes: int = 1 << 30
    """Total size of the files in ``tmp``, which is measured at intervals."""
    files: int = 20_000
    """Number of files and folders in ``tmp``, which is measured at intervals."""
    output_bytes: int = 256 << 10
    """Size of stdout and stderr together."""
    open_files: int = 256
    """Open files of each process."""
    processes: int = 128
    """Processes and threads."""


def limit_command(limits: Limits, *, is_counted_alone: bool) -> list[str]:
    """Return the command, to put before another, that limits the resources of its processes.

    Args:
        limits: The limits.
        is_counted_alone: Whether the kernel counts the program's processes apart from the user's.
    """
    values = (
        limits.cpu_s,
        limits.memory_bytes >> 10,
        limits.file_bytes >> 9,
        limits.open_files,
        limits.processes if is_counted_alone else _user_process_limit(limits.processes),
    )
    return ["/bin/sh", "-c", _WITH_LIMITS, "sh", *map(str, values)]


def _user_process_limit(processes: int) -> int | str:
    """Return the limit for all threads of this user, which the kernel counts together.

    Args:
        processes: The limit of one program.
    """
    count = 0
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if process.stat().st_uid == os.getuid():
                count += len(os.listdir(process / "task"))  # noqa: PTH208 - counts, needs no paths
    # One program runs per core. Without a count, as on macOS, set no limit: the user could be over
    # it already.
    return count + processes * cores() if count else "unlimited"


# The disk that a program uses: in its folder, and in files that no folder shows.

_LONGEST_PAUSE_S = 0.25
_SHORTEST_PAUSE_S = 0.002
_BYTES_PER_S, _FILES_PER_S = 4 << 30, 200_000
"""More than a program can write."""
_LONGEST_PATH = 3800
"""In bytes: with the longest file name, a path is still short enough for the kernel."""
_LONGEST_TRANSFER_S = 1.0
"""Seconds after which an open file that is sent through a socket should have been received."""
_IN_MEMORY = ("/memfd:", "/SYSV", "/dev/zero", "/[aio]")
"""Beginnings of the names of deleted files that are not on a disk."""

_File = tuple[int, int]
"""Device and number of a file."""
_SENT: _File = (-1, -1)


class Usage:
    """The disk usage of a program, measured more often the closer it is to its limits.

    Args:
        folder: The folder in which it can write.
        starter: The process whose descendants are the program.
        max_bytes: Maximum size of all files.
        max_files: Maximum number of files and folders.
    """

    def __init__(self, folder: Path, starter: int, max_bytes: int, max_files: int) -> None:
        self._folder = folder
        self._starter = starter
        self._max_bytes = max_bytes
        self._max_files = max_files
        self._next_due = time.monotonic() + _pause(max_bytes, max_files)
        self._sent_since = math.inf

    @property
    def due_in_s(self) -> float:
        """Seconds until the next measurement is due."""
        return max(0.0, self._next_due - time.monotonic())

    def is_beyond(self) -> bool:
        """Return whether a limit is exceeded; False if the next measurement is not due yet."""
        start, cpu_start = time.monotonic(), time.thread_time()
        if start < self._next_due:
            return False
        left_bytes, left_files = self._max_bytes, self._max_files
        for entry in entries_below(str(self._folder)):
            left_files -= 1
            with contextlib.suppress(OSError):
                left_bytes -= entry.stat(follow_symlinks=False).st_blocks * 512
                # Too deep to measure what is below it: count it as over the limit.
                if len(os.fsencode(entry.path)) > _LONGEST_PATH and entry.is_dir(
                    follow_symlinks=False
                ):
                    left_files = -1
            if left_bytes < 0 or left_files < 0:
                return True
        processes = descendants(self._starter) if sys.platform == "linux" else ()
        found = sorted(pair for process in processes for pair in _unlinked(process))
        unlinked = dict(found)  # the largest of several sizes of a file
        left_bytes -= sum(unlinked.values())
        # What is sent to nobody cannot be measured: count it as over the limit if it stays there.
        self._sent_since = min(self._sent_since, start) if _SENT in unlinked else math.inf
        if left_bytes < 0 or start - self._sent_since > _LONGEST_TRANSFER_S:
            return True
        # Pause as long as this took, so that measuring takes at most half of a core.
        pause_s = max(_pause(left_bytes, left_files), time.thread_time() - cpu_start)
        self._next_due = time.monotonic() + pause_s
        return False


def _pause(left_bytes: int, left_files: int) -> float:
    """Return the seconds for which the fastest program stays within its limits."""
    soonest = min(left_bytes / _BYTES_PER_S, left_files / _FILES_PER_S)
    return min(max(soonest, _SHORTEST_PAUSE_S), _LONGEST_PAUSE_S)


def _unlinked(process: int) -> Iterator[tuple[_File, int]]:
    """Yield the files in no folder that a process has open or mapped, with their bytes on disk.

    `_SENT` stands for open files on their way through a socket, where nobody sees them.
    """
    for thread in threads_of(process):
        task = f"/proc/{process}/task/{thread}"
        # All threads have the same files, and those that have ended show none.
        if files := _listed(f"{task}/fd"):
            for file in files:
                with contextlib.suppress(OSError):
                    yield from _open_file(task, file)
            with contextlib.suppress(OSError):
                yield from _mapped_files(process, Path(task, "maps").read_bytes())
            return


def _open_file(task: str, file: str) -> Iterator[tuple[_File, int]]:
    path = f"{task}/fd/{file}"
    status = os.stat(path)  # noqa: PTH116  as below
    if stat.S_ISSOCK(status.st_mode):
        details = Path(task, "fdinfo", file).read_bytes().split()
        if b"scm_fds:" in details and details[details.index(b"scm_fds:") + 1] != b"0":
            yield _SENT, 0
    elif not status.st_nlink and not os.readlink(path).startswith(_IN_MEMORY):  # noqa: PTH115
        yield from _regular(status)


def _mapped_files(process: int, maps: bytes) -> Iterator[tuple[_File, int]]:
    for line in maps.decode("utf-8", "replace").splitlines():
        if not line.endswith(" (deleted)"):
            continue
        addresses, _, offset, device, number, name = line.split(maxsplit=5)
        if name.startswith(_IN_MEMORY):
            continue
        start, end = (int(address, 16) for address in addresses.split("-"))
        try:
            yield from _regular(os.stat(f"/proc/{process}/map_files/{start:x}-{end:x}"))  # noqa: PTH116
        except OSError:  # only root may ask: at least what is mapped exists
            major, minor = (int(part, 16) for part in device.split(":"))
            yield (os.makedev(major, minor), int(number)), int(offset, 16) + end - start


def _regular(status: os.stat_result) -> Iterator[tuple[_File, int]]:
    if stat.S_ISREG(status.st_mode):
        yield (status.st_dev, status.st_ino), status.st_blocks * 512


def threads_of(process: int) -> list[str]:
    """Return the numbers of the threads of a process, none once it has ended."""
    return _listed(f"/proc/{process}/task")


def _listed(folder: str) -> list[str]:
    try:
        return os.listdir(folder)  # noqa: PTH208  names, of which there may be thousands
    except OSError:
        return []


def entries_below(folder: str) -> Iterator[os.DirEntry[str]]:
    """Yield all files and folders below a folder whose paths are short enough for the system.

    No link is followed, not even one that a program has put in place of the folder.
    """
    folders = [] if os.path.islink(folder) else [folder]  # noqa: PTH114  a text is given
    while folders:
        folder = folders.pop()
        with contextlib.suppress(OSError):
            if not os.access(folder, os.R_OK | os.X_OK):
                _make_readable(folder)
        with contextlib.suppress(OSError), os.scandir(folder) as entries:
            for entry in entries:
                yield entry
                with contextlib.suppress(OSError):
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(entry.path)


def _make_readable(folder: str) -> None:
    """Make a folder readable that a program has made unreadable, without following a link."""
    if sys.platform != "linux":
        Path(folder).chmod(0o700, follow_symlinks=False)
        return
    file = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        Path(f"/proc/self/fd/{file}").chmod(0o700)
    finally:
        os.close(file)
