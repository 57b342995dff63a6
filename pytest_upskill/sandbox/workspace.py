"""Temporary folders, one for each program: made, and removed whatever is in them."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pytest_upskill.sandbox.disk_usage import scan

_PREFIX = "upskill-"
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
        folders = []
        for entry in [*scan(str(root))]:
            if entry.is_dir(follow_symlinks=False):
                with contextlib.suppress(OSError, RecursionError):
                    shutil.rmtree(entry.path)
                folders.append(entry.path)
            elif entry.name != _LOCK:
                os.unlink(entry.path)  # noqa: PTH108  as above
        if left := [*filter(os.path.exists, folders)]:
            # Python cannot remove what is deeper than it can recurse.
            for command in (("chmod", "-R", "u+rwx"), ("rm", "-rf")):
                subprocess.run([*command, "--", *left], stderr=subprocess.DEVNULL, check=False)  # noqa: S603  no program writes these names
        (root / _LOCK).unlink()
        root.rmdir()
