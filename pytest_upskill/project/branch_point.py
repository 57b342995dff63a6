"""Where the branch of a pull request began, and which folders have changed since."""

import os
from functools import cache
from pathlib import Path

from pytest_upskill.project import git


class BranchPoint:
    """The commit where the current branch left a ref.

    Git is asked once about all skills of a folder, which may be hundreds.

    Args:
        ref: A branch, tag or commit.
        project: A folder in the project's repository, which is that of the ref.
    """

    def __init__(self, ref: str, project: Path) -> None:
        self.ref = ref
        self.project = project
        self._commit_of = cache(lambda home: git.merge_base(home, ref, project))
        self._names_in = cache(lambda home: git.names_in(self._commit_of(home), home))

    def commit(self, folder: Path | None = None) -> str:
        """Return the commit, in the repository of a folder, else of the project.

        Raises:
            GitError: As `git.merge_base` does.
        """
        return self._commit_of(_home(folder or self.project))

    def is_changed(self, folder: Path, *beside: Path) -> bool:
        """Return whether a folder, or other paths that belong to it, have changed since.

        What counts as a change is said in `git.is_changed`.

        Raises:
            GitError: A git command fails.
        """
        place, home = Path(os.path.realpath(folder)), _home(folder)
        if beside or place == home or git.links(folder):
            return git.is_changed(self.commit(folder), folder, *beside)
        changed, tracked = self._names_in(home)
        is_ignored = place.name not in tracked and (place / "SKILL.md").exists()
        return place.name in changed or is_ignored


def _home(folder: Path) -> Path:
    """Return the folder that contains a folder in the same repository; itself if it is the top."""
    place = Path(os.path.realpath(folder))
    return place if (place / ".git").exists() else place.parent
