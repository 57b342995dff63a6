"""The commit, the branch and the uncommitted changes of a work tree."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from pytest_upskill import STATE
from pytest_upskill.project.git_command import GitError, git_output

_NOT_OURS = f":(exclude,glob,top)**/{STATE}/**"
"""Pathspec without recordings, baselines and history, which runs themselves write."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Revision:
    """The state of a git work tree."""

    commit: str
    """Full hash of HEAD."""
    branch: str
    """Name of the branch; "" if HEAD is detached."""
    dirty: bool
    """Whether tracked files differ from the commit, or a skill's folder has untracked ones."""


def revision(project: Path, folders: Iterable[Path]) -> Revision | None:
    """Return the state of a project's work tree; None without git, a repository or a commit.

    Args:
        project: A folder in the repository.
        folders: Folders in which untracked files count as changes.
    """
    try:
        commit = _line(project, "rev-parse", "--verify", "HEAD")
        if commit is None:
            return None
        branch = _line(project, "symbolic-ref", "--short", "--quiet", "HEAD")
        return Revision(commit=commit, branch=branch or "", dirty=_is_dirty(project, folders))
    except GitError:
        return None


def _is_dirty(project: Path, folders: Iterable[Path]) -> bool:
    status = ("status", "--porcelain", "--untracked-files=no", "--", ":/", _NOT_OURS)
    if git_output(project, *status):
        return True
    inside = sorted({str(folder) for folder in folders if folder.is_dir()})
    if not inside:
        return False
    return bool(git_output(project, "status", "--porcelain", "--", *inside, _NOT_OURS))


def _line(folder: Path, *args: str) -> str | None:
    found = git_output(folder, *args)
    return None if found is None else found.decode("utf-8", "replace").strip()
