"""A folder of one program's own."""

from __future__ import annotations

import contextlib
import itertools
import os
import secrets
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_PREFIX = "upskill-"
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
    token = secrets.token_hex(4)
    numbers = itertools.count()
    with contextlib.suppress(OSError):
        root.chmod(0o700)
    folders = [root]
    while folders:
        folder = folders.pop()
        for entry in _entries(folder):
            with contextlib.suppress(OSError):
                if entry.is_dir(follow_symlinks=False):
                    # Side by side: a path through all of them may be longer than a path can be.
                    beside = root / f"{token}-{next(numbers)}"
                    os.chmod(entry.path, 0o700)  # noqa: PTH101 - entries are strings
                    folders.append(Path(entry.path).rename(beside))
                elif folder != root or entry.name != _LOCK:
                    os.unlink(entry.path)  # noqa: PTH108
        if folder != root:
            with contextlib.suppress(OSError):
                folder.rmdir()
    with contextlib.suppress(OSError):
        (root / _LOCK).unlink()
        root.rmdir()


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        return list(entries)
    return []
