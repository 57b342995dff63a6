"""A folder of one program's own."""

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
_USAGE_PAUSE_S = 0.2
_LONGEST_PATH = 2000
_LOCK = "in-use-by-pytest-upskill"
"""Name of a file in each workspace, locked by the process that uses it; with it the lock ends."""


@dataclass(frozen=True, slots=True)
class Workspace:
    """Where a program finds its input and leaves its output."""

    root: Path

    def write(self, name: str, text: str) -> str:
        """Create ``name``, a path as `relative_path` gives it, below the root.

        Returns:
            The path as the program sees it.

        Raises:
            OSError: It exists, or a folder of it is a file.
        """
        target = self.root / name
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("xb") as file:
            file.write(text.encode("utf-8", "replace"))
        return f"../{name}"


class Usage:
    """What a folder holds, looked at now and then."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._next = time.monotonic() + _USAGE_PAUSE_S

    def is_beyond(self, most_bytes: int, most_files: int) -> bool:
        """Return whether a limit is exceeded; False also where it has just been looked at."""
        start = time.monotonic()
        if start < self._next:
            return False
        size = count = 0
        folders = [str(self._folder)]
        while folders and size <= most_bytes and count <= most_files:
            for entry in _entries(folders.pop()):
                count += 1
                with contextlib.suppress(OSError):
                    size += entry.stat(follow_symlinks=False).st_blocks * 512
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(entry.path)
                        # So deep that what is below it could not be counted.
                        count += most_files * (len(entry.path) > _LONGEST_PATH)
        # Looking takes a tenth of the time at most.
        self._next = start + max(_USAGE_PAUSE_S, 10 * (time.monotonic() - start))
        return size > most_bytes or count > most_files


@contextlib.contextmanager
def workspace() -> Iterator[Workspace]:
    """Make a folder with an empty ``cwd``, where programs start, and ``tmp``, where they write."""
    root, lock = _make_root()
    try:
        (root / "cwd").mkdir()
        (root / "tmp").mkdir()
        yield Workspace(root)
    finally:
        _remove(root)
        os.close(lock)


def remove_leftovers() -> None:
    """Remove the workspaces of this user's processes that were killed."""
    for root in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        lock = _lock(root)
        if lock is not None:
            _remove(root)
            os.close(lock)


def _make_root() -> tuple[Path, int]:
    while True:
        root = Path(tempfile.mkdtemp(prefix=_PREFIX)).resolve()
        lock = _lock(root, os.O_CREAT | os.O_EXCL)
        # None where another process removes leftovers at this moment, and has taken it for one.
        if lock is not None:
            return root, lock


def _lock(root: Path, flags: int = 0) -> int | None:
    """Lock a workspace of this user until the file is closed; None if another process has."""
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
    """Remove a tree, however deep or unreadable a program has made it; the lock comes last."""
    with contextlib.suppress(OSError):
        root.chmod(0o700)
        folder = os.open(root, _OPEN_FOLDER)
        _empty(folder)
        (root / _LOCK).unlink()
        root.rmdir()


def _empty(folder: int) -> None:
    """Remove what is in an open folder, and close it; by steps, as no path is long enough."""
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
    """Remove all that are no folders; return the names of those."""
    folders = []
    for entry in _entries(folder):
        with contextlib.suppress(OSError):
            if entry.is_dir(follow_symlinks=False):
                folders.append(entry.name)
            elif entry.name != but:
                os.unlink(entry.name, dir_fd=folder)
    return folders


def _entries(folder: str | int) -> list[os.DirEntry[str]]:
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        return list(entries)
    return []
