"""Temporary folders, one for each program."""

from __future__ import annotations

import contextlib
import os
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_PREFIX = "upskill-"
_OPEN_FOLDER = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
_USAGE_PAUSE_S = 0.05
_LONGEST_PATH = 2000
_LOCK = "in-use-by-pytest-upskill"
"""Name of a file in each workspace that is locked as long as the process that uses it lives."""


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
    """The disk usage of a folder, measured at intervals."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._next = time.monotonic() + _USAGE_PAUSE_S

    def is_beyond(self, most_bytes: int, most_files: int) -> bool:
        """Return whether a limit is exceeded; False if the next measurement is not due yet.

        Args:
            most_bytes: Maximum size of all files.
            most_files: Maximum number of files and folders.
        """
        start = time.monotonic()
        if start < self._next:
            return False
        size = count = 0
        beyond = False
        for entry in entries_below(str(self._folder)):
            count += 1
            with contextlib.suppress(OSError):
                size += entry.stat(follow_symlinks=False).st_blocks * 512
                # Too deep to measure what is below it: count it as over the limit.
                deep = len(entry.path) > _LONGEST_PATH and entry.is_dir(follow_symlinks=False)
                count += most_files * deep
            if beyond := size > most_bytes or count > most_files:
                break
        # Measuring takes at most a tenth of the time.
        self._next = start + max(_USAGE_PAUSE_S, 10 * (time.monotonic() - start))
        return beyond


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
    """Lock a workspace of this user until the returned file is closed; return None on failure."""
    import fcntl  # not on Windows, where no level of the sandbox works

    try:
        file = os.open(root / _LOCK, os.O_RDONLY | os.O_NOFOLLOW | flags, 0o600)
    except OSError:
        return None
    try:
        if os.fstat(file).st_uid == os.getuid():
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
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
    names: list[str] = []
    left = [_remove_files(folder, _LOCK)]
    while left:
        if left[-1]:
            name = left[-1].pop()
            with contextlib.suppress(OSError):
                os.chmod(name, 0o700, dir_fd=folder)
                below = os.open(name, _OPEN_FOLDER, dir_fd=folder)
                os.close(folder)
                folder = below
                names.append(name)
                left.append(_remove_files(folder))
        else:
            left.pop()
            if names:
                above = os.open("..", _OPEN_FOLDER, dir_fd=folder)
                os.close(folder)
                folder = above
                with contextlib.suppress(OSError):
                    os.rmdir(names.pop(), dir_fd=folder)
    os.close(folder)


def _remove_files(folder: int, but: str = "") -> list[str]:
    """Remove all files in a folder except ``but``; return the names of its folders."""
    folders = []
    for entry in _entries(folder):
        with contextlib.suppress(OSError):
            if entry.is_dir(follow_symlinks=False):
                folders.append(entry.name)
            elif entry.name != but:
                os.unlink(entry.name, dir_fd=folder)
    return folders


def _entries(folder: str | int) -> list[os.DirEntry[str]]:
    return list(_each_entry(folder))


def entries_below(folder: str) -> Iterator[os.DirEntry[str]]:
    """Yield what is below a folder, as far as it can be read, however deep it is."""
    folders = [folder]
    while folders:
        for entry in _each_entry(folders.pop()):
            yield entry
            with contextlib.suppress(OSError):
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)


def _each_entry(folder: str | int) -> Iterator[os.DirEntry[str]]:
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        yield from entries
