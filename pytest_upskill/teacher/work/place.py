"""How a path is written in a line for the user."""

from __future__ import annotations

from pathlib import Path


def place(path: Path) -> str:
    """Return a path as it is seen from the current folder, or whole if it is not below that."""
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)
