"""The recordings that a branch changed, as edited recordings decide the results of a replay."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress

from pytest_upskill.answers.cache import Cache
from pytest_upskill.project.git import GitError, changed_files, has_remote, merge_base

_TARGETS = ("GITHUB_BASE_REF", "CI_MERGE_REQUEST_TARGET_BRANCH_NAME", "CHANGE_TARGET")
"""Variables in which GitHub, GitLab and Jenkins name the target branch of a pull request."""

_DEFAULT_BRANCHES = ("HEAD", "main", "master")


def changed_recordings(
    cache: Cache, environ: Mapping[str, str], refs: Sequence[str | None]
) -> list[str]:
    """Return a line for each recording that differs from where the branch began.

    Args:
        cache: The recordings.
        environ: Where CI systems name the target of a pull request.
        refs: Git refs from which the branch may have been created, the likeliest first; None is
            skipped.

    Returns:
        A line with the counts, then one for each recording, the edited ones first; nothing if none
        changed, or if there is no repository; one line with the reason if git cannot tell.
    """
    if not cache.folder.is_dir():
        return []
    targets = [f"origin/{environ[name]}" for name in _TARGETS if environ.get(name)]
    defaults = [f"origin/{branch}" for branch in _DEFAULT_BRANCHES]
    if not has_remote(cache.folder):
        # Without a remote there is no branch to compare with, only uncommitted changes.
        defaults = ["HEAD"]
    problem = ""
    for ref in (*filter(None, refs), *targets, *defaults):
        try:
            commit = merge_base(cache.folder, ref)
            return _lines(cache, changed_files(commit, cache.folder), f"{ref} ({commit[:7]})")
        except GitError as error:
            problem = problem or str(error)
    if "not in a git repository" in problem or "git is not installed" in problem:
        return []
    return [f"recordings: cannot tell which of them this branch changed: {problem}"]


def _lines(cache: Cache, changed: Mapping[str, str], since: str) -> list[str]:
    files = {name: letter for name, letter in changed.items() if name.endswith(".json")}
    added = sorted(name for name, letter in files.items() if letter == "A")
    deleted = sorted(name for name, letter in files.items() if letter == "D")
    edited = sorted(files.keys() - {*added, *deleted})
    if not files:
        return []
    subjects: dict[str, str] = {}
    for file, recording in cache.recordings(agents=True):
        with suppress(ValueError):
            subjects[file.relative_to(cache.folder).as_posix()] = recording.subject
    groups = {"edited": edited, "added": added, "deleted": deleted}
    counts = ", ".join(f"{len(names)} {change}" for change, names in groups.items() if names)
    total = f"recordings changed since {since}: {counts}; review them like code"
    return [
        f"{total}, as this replay's results rest on them",
        *(_line(change, name, subjects) for change, names in groups.items() for name in names),
    ]


def _line(change: str, name: str, subjects: Mapping[str, str]) -> str:
    return f"{change}: {name} ({subjects[name]})" if name in subjects else f"{change}: {name}"
