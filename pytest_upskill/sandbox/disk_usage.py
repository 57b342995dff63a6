"""The disk that a program uses: in its folder, and in files that no folder shows."""

from __future__ import annotations

import contextlib
import math
import os
import stat
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from pytest_upskill.sandbox.launcher import descendants

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
    for thread in _listed(f"/proc/{process}/task"):
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


def _listed(folder: str) -> list[str]:
    try:
        return os.listdir(folder)  # noqa: PTH208  names, of which there may be thousands
    except OSError:
        return []


def entries_below(folder: str) -> Iterator[os.DirEntry[str]]:
    """Yield all files and folders below a folder whose paths are short enough for the system."""
    folders = [folder]
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
