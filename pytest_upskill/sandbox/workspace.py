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

_PREFIX = "pytest-upskill-sandbox-"
"""Begins the names of workspaces, each of which is locked while the process that made it runs."""


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
    lock = None
    while lock is None:
        root = Path(tempfile.mkdtemp(prefix=_PREFIX)).resolve()
        # None if another process, which removes leftovers right now, has locked it first.
        lock = _lock(root)
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


def _lock(root: Path) -> int | None:
    """Lock a workspace of this user, and return its open folder, None on failure.

    Closing it, or the end of this process, unlocks it.
    """
    import fcntl  # not on Windows, where no level of the sandbox works

    try:
        folder = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return None
    with contextlib.suppress(OSError):
        if os.fstat(folder).st_uid == os.getuid():
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Another process may have removed the workspace in the meantime, and then unlocked it.
            if root.exists():
                return folder
    os.close(folder)
    return None


def _remove(root: Path) -> None:
    """Remove a workspace, even if a program has made it deep or unreadable."""
    with contextlib.suppress(OSError, RecursionError):
        shutil.rmtree(root)
    if root.exists():
        # Python stops where it may not read, and at what is deeper than it can recurse.
        for command in (("chmod", "-R", "u+rwx"), ("rm", "-rf")):
            subprocess.run([*command, "--", root], stderr=subprocess.DEVNULL, check=False)  # noqa: S603  no program writes this name
