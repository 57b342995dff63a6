"""Recordings that a branch changed, on which a replay of it then rests."""

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from pytest_upskill.answers.recordings import Cache
from pytest_upskill.answers.run import JUDGEMENT
from pytest_upskill.project import git

_TARGETS = ("GITHUB_BASE_REF", "CI_MERGE_REQUEST_TARGET_BRANCH_NAME", "CHANGE_TARGET")
"""Variables in which GitHub, GitLab and Jenkins name the target branch of a pull request."""

_DEFAULT_BRANCHES = ("HEAD", "main", "master")


def targets_of_request(environ: Mapping[str, str]) -> list[str]:
    """Return the branch that a CI system wants to merge a pull request into; nothing elsewhere."""
    return [f"origin/{environ[name]}" for name in _TARGETS if environ.get(name)]


def changed_recordings(
    cache: Cache, environ: Mapping[str, str], refs: Sequence[str | None]
) -> list[str]:
    """Return a line that says so if recordings differ from where the branch began.

    Args:
        cache: The recordings.
        environ: Where CI systems name the target of a pull request.
        refs: Git refs from which the branch may have been created, the likeliest first; None is
            skipped.

    Returns:
        Nothing if none changed, or if there is no repository; the reason if git cannot tell.
    """
    if not cache.folder.is_dir():
        return []
    defaults = [f"origin/{branch}" for branch in _DEFAULT_BRANCHES]
    # Where git cannot tell, it says so below.
    with suppress(git.GitError):
        if not git.git_output(cache.folder, "remote"):
            # Without a remote there is no branch to compare with, only uncommitted changes.
            defaults = ["HEAD"]
    problem = ""
    for ref in (*filter(None, refs), *targets_of_request(environ), *defaults):
        try:
            commit = git.merge_base(cache.folder, ref)
            if not git.is_changed(commit, cache.folder):
                return []
        except git.NoGitError:
            return []
        except git.GitError as error:
            problem = problem or str(error)
            continue
        command = f"git diff --stat {commit[:7]} -- {cache.shown}"
        if git.git_output(cache.folder, "diff", "--quiet", commit, "--", ".") is not None:
            command = f"git status --short {cache.shown}"  # all of them are new
        cure = f"review them like code ({command})"
        return [f"recordings changed since {ref}, on which a replay's results rest: {cure}"]
    return [f"recordings: cannot tell which of them this branch changed: {problem}"]


def skills_with_other_recordings(folder: Path, ref: str, project: Path) -> set[str]:
    """Return the names of skills of which recordings were changed or deleted since a git ref.

    Raises:
        GitError: A git command fails.
    """
    if not folder.is_relative_to(project):
        return set()
    lines = git.rewritten(git.merge_base(project, ref), project, folder)
    return set(re.findall(rf'^.\s*"subject": "(?:{JUDGEMENT})?(.+?)::', lines, re.MULTILINE))
