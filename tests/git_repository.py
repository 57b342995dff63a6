"""A git repository for tests to change."""

from __future__ import annotations

import subprocess
from pathlib import Path

_IDENTITY = ("-c", "user.name=Test", "-c", "user.email=test@example.org", "-c", "gc.auto=0")


def git(folder: Path, *args: str) -> str:
    """Run git and return what it writes."""
    command = ["git", *_IDENTITY, "-c", "protocol.file.allow=always", *args]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout


def commit_all(folder: Path, message: str = "change") -> str:
    """Commit everything in the repository and return the commit."""
    if not (folder / ".git").exists():
        git(folder, "init", "--quiet", "--initial-branch=main")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--allow-empty", "--message", message)
    return git(folder, "rev-parse", "HEAD").strip()
