"""Checks of the git repository that an agent left."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pytest_upskill.checks.files import GitState, Left, OfWorkspace, matches
from pytest_upskill.checks.result import Check, CheckResult, about, failed, passed, quoted


@dataclass(frozen=True, slots=True, kw_only=True)
class Git(OfWorkspace):
    """A check of one fact; exactly one of the fields is set."""

    name: ClassVar[str] = "git"
    also_called = "git_state repository commit"

    branch: str = ""
    """The current branch; ``*`` and ``?`` are wildcards."""
    clean: bool | None = None
    """Whether nothing is uncommitted or untracked."""
    message: Check | None = None
    """A check of the message of the last commit."""
    staged: str = ""
    """A file whose changes are staged; ``*`` and ``?`` are wildcards."""

    def check_left(self, left: Left) -> CheckResult:
        """Compare the fact.

        Raises:
            CheckError: The check of the message cannot be decided.
        """
        if left.git is None:
            return failed(self.name, ": there is no git repository in the workspace")
        if self.message is not None:
            result = self.message.check(left.git.message)
            return about(result, f"{self.name} message", "the message of the last commit")
        holds, what = self._fact(left.git)
        return (passed if holds else failed)(self.name, what)

    def _fact(self, git: GitState) -> tuple[bool, str]:
        if self.branch:
            found = git.branch or "none (detached HEAD)"
            return matches(git.branch, self.branch), f" branch {self.branch}: it is {found}"
        if self.staged:
            names = ", ".join(git.staged) or "nothing"
            holds = any(matches(name, self.staged) for name in git.staged)
            return holds, f" staged {self.staged}: {names} is staged"
        dirty = (
            f"uncommitted: {', '.join(map(quoted, git.status))}" if git.status else "it is clean"
        )
        return (not git.status) is self.clean, f" clean {str(self.clean).lower()}: {dirty}"
