"""Recordings and baselines that a branch changed, on which its results then rest."""

import os
import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from pytest_upskill.answers.run import JUDGEMENT
from pytest_upskill.project import git
from pytest_upskill.project.branch_point import BranchPoint
from pytest_upskill.project.files import display_path

_TARGETS = ("GITHUB_BASE_REF", "CI_MERGE_REQUEST_TARGET_BRANCH_NAME", "CHANGE_TARGET")
"""Variables in which GitHub, GitLab and Jenkins name the target branch of a pull request."""


def merge_targets() -> list[str]:
    """Return the branch that a CI system wants to merge a pull request into; nothing elsewhere."""
    return [f"origin/{branch}" for branch in map(os.environ.get, _TARGETS) if branch]


def changed_files(kind: str, folder: Path, refs: Sequence[str | None]) -> list[str]:
    """Return a line that says so if files of a folder differ from where the branch began.

    Args:
        kind: What the files are, in words.
        folder: The folder.
        refs: Git refs from which the branch may have been created, the likeliest first; None is
            skipped.

    Returns:
        Nothing if none changed, or if there is no repository; the reason if git cannot tell.
    """
    if not folder.is_dir():
        return []
    defaults = [f"origin/{branch}" for branch in ("HEAD", "main", "master")]
    # Where git cannot tell, it says so below.
    with suppress(git.GitError):
        if not git.git_output(folder, "remote"):
            # Without a remote there is no branch to compare with, only uncommitted changes.
            defaults = ["HEAD"]
    problem = ""
    for ref in (*filter(None, refs), *merge_targets(), *defaults):
        try:
            commit = git.merge_base(folder, ref)
            if not git.is_changed(commit, folder):
                return []
        except git.NoGitError:
            return []
        except git.GitError as error:
            problem = problem or str(error)
            continue
        how, command = _how_changed(folder, commit)
        return [f"{kind} changed since {ref} ({how}): review them like code ({command})"]
    return [f"{kind}: cannot tell which of them this branch changed: {problem}"]


def _how_changed(folder: Path, commit: str) -> tuple[str, str]:
    """Return how files of a folder changed since a commit, and the command that lists them."""

    def diff(*args: str) -> str | None:
        return git.git_output(folder, "diff", "--no-renames", *args, commit, "--", ".")

    shown = display_path(folder)
    if diff("--quiet") is not None:
        return "all of them new", f"git status --short {shown}"
    # Answers to changed questions are new files; an edited one may be a forgery.
    names = diff("--name-only", "--diff-filter=MD")
    how = f"{len(names.splitlines())} edited or deleted" if names else "all of them new"
    return how, f"git diff --stat {commit[:7]} -- {shown}"


def skills_with_other_recordings(folder: Path, point: BranchPoint) -> set[str]:
    """Return the names of skills of which recordings were changed or deleted since a branch began.

    Raises:
        GitError: A git command fails.
    """
    if not folder.is_relative_to(point.project):
        return set()
    lines = git.rewritten(point.commit(), point.project, folder)
    return set(re.findall(rf'^.\s*"subject": "(?:{JUDGEMENT})?(.+?)::', lines, re.MULTILINE))
