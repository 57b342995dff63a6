"""A folder of one program's own."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


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
    with tempfile.TemporaryDirectory(prefix="upskill-", ignore_cleanup_errors=True) as folder:
        root = Path(folder).resolve()
        (root / "cwd").mkdir()
        (root / "tmp").mkdir()
        yield Workspace(root)
