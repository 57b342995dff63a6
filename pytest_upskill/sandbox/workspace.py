"""Temporary folders, one for each program: made, measured, and removed whatever is in them."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_PREFIX = "upskill-"
_OPEN_FOLDER = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
_LONGEST_PAUSE_S = 0.25
_SHORTEST_PAUSE_S = 0.002
_BYTES_PER_S, _FILES_PER_S = 4 << 30, 200_000
"""More than a program can write."""
_LONGEST_PATH = 3800
"""In bytes: with the longest file name, a path is still short enough for the kernel."""
_LOCK = "in-use-by-pytest-upskill"
"""Name of a file in each workspace that is locked while the process that made it runs."""


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


class Usage:
    """The disk usage of a folder, measured more often the closer it is to its limits.

    Args:
        folder: The folder.
        max_bytes: Maximum size of all files.
        max_files: Maximum number of files and folders.
    """

    def __init__(self, folder: Path, max_bytes: int, max_files: int) -> None:
        self._folder = folder
        self._max_bytes = max_bytes
        self._max_files = max_files
        self._next_due = time.monotonic() + _pause(max_bytes, max_files)

    @property
    def due_in_s(self) -> float:
        """Seconds until the next measurement is due."""
        return max(0.0, self._next_due - time.monotonic())

    def is_beyond(self) -> bool:
        """Return whether a limit is exceeded; False if the next measurement is not due yet."""
        start = time.monotonic()
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
        # Pause as long as this took, so that measuring takes at most half of the time.
        end = time.monotonic()
        self._next_due = end + max(_pause(left_bytes, left_files), end - start)
        return False


def _pause(left_bytes: int, left_files: int) -> float:
    """Return the seconds for which the fastest program stays within its limits."""
    soonest = min(left_bytes / _BYTES_PER_S, left_files / _FILES_PER_S)
    return min(max(soonest, _SHORTEST_PAUSE_S), _LONGEST_PAUSE_S)


@contextlib.contextmanager
def workspace() -> Iterator[Workspace]:
    """Make a workspace with an empty ``cwd``, where programs start, and ``tmp``, where they write.

    It is removed at the end.
    """
    root, lock = _make_root()
    try:
        (root / "cwd").mkdir()
        (root / "tmp").mkdir()
        yield Workspace(root)
    finally:
        _remove(root)
        os.close(lock)


def remove_leftovers() -> None:
    """Remove the workspaces of processes of this user that no longer run."""
    for root in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        lock = _lock(root)
        if lock is not None:
            _remove(root)
            os.close(lock)


def _make_root() -> tuple[Path, int]:
    while True:
        root = Path(tempfile.mkdtemp(prefix=_PREFIX)).resolve()
        lock = _lock(root, os.O_CREAT | os.O_EXCL)
        # None if another process, which removes leftovers right now, has locked it first.
        if lock is not None:
            return root, lock


def _lock(root: Path, flags: int = 0) -> int | None:
    """Lock a workspace of this user, and return the open lock file, None on failure.

    Closing the file, or the end of this process, unlocks it.
    """
    import fcntl  # not on Windows, where no level of the sandbox works

    try:
        file = os.open(root / _LOCK, os.O_RDONLY | os.O_NOFOLLOW | flags, 0o600)
    except OSError:
        return None
    try:
        if os.fstat(file).st_uid == os.getuid():
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Another process may have removed the workspace in the meantime, and then unlocked it.
            if os.fstat(file).st_nlink:
                return file
    except OSError:
        pass
    os.close(file)
    return None


def _remove(root: Path) -> None:
    """Remove a workspace, even if a program has made it deep or unreadable; the lock goes last."""
    with contextlib.suppress(OSError):
        root.chmod(0o700)
        folder = os.open(root, _OPEN_FOLDER)
        _empty(folder)
        (root / _LOCK).unlink()
        root.rmdir()


def _empty(folder: int) -> None:
    """Remove the contents of an open folder, and close it.

    It descends folder by folder, because full paths may be too long for the system.
    """
    # For each folder on the way down to the current one: its name, and the subfolders to remove.
    names: list[str] = []
    subfolders = [_remove_files(folder, kept=_LOCK)]
    while subfolders:
        if subfolders[-1]:
            name = subfolders[-1].pop()
            with contextlib.suppress(OSError):
                os.chmod(name, 0o700, dir_fd=folder)
                below = os.open(name, _OPEN_FOLDER, dir_fd=folder)
                os.close(folder)
                folder = below
                names.append(name)
                subfolders.append(_remove_files(folder))
        else:
            subfolders.pop()
            if names:
                parent = os.open("..", _OPEN_FOLDER, dir_fd=folder)
                os.close(folder)
                folder = parent
                with contextlib.suppress(OSError):
                    os.rmdir(names.pop(), dir_fd=folder)
    os.close(folder)


def _remove_files(folder: int, kept: str | None = None) -> list[str]:
    """Remove all files in a folder except the kept one, and return the names of its subfolders."""
    subfolders = []
    for entry in [*_scan(folder)]:
        with contextlib.suppress(OSError):
            if entry.is_dir(follow_symlinks=False):
                subfolders.append(entry.name)
            elif entry.name != kept:
                os.unlink(entry.name, dir_fd=folder)
    return subfolders


def entries_below(folder: str) -> Iterator[os.DirEntry[str]]:
    """Yield all files and folders below a folder whose paths are short enough for the system."""
    folders = [folder]
    while folders:
        folder = folders.pop()
        with contextlib.suppress(OSError):
            if not os.access(folder, os.R_OK | os.X_OK):
                _make_readable(folder)
        for entry in _scan(folder):
            yield entry
            with contextlib.suppress(OSError):
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)


def _scan(folder: str | int) -> Iterator[os.DirEntry[str]]:
    """Yield the entries of a folder, none if it cannot be read."""
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        yield from entries


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
