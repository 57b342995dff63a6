"""``--upskill-changed-since``: run only the skills that a branch changed."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest

from pytest_upskill.formats.skill import Skill
from pytest_upskill.repository.git import commit_then, is_changed
from pytest_upskill.repository.git_command import GitError
from pytest_upskill.session.collection.items import TrialItem
from pytest_upskill.session.worker_output import send_to_controller, sent_by

_KEY = "upskill_changed_since"


class ChangedSince:
    """Plugin that deselects the trials of unchanged skills and reports how many skills those are.

    Args:
        config: Config of this process.
        ref: Git ref that the branch is compared with.
        project: Folder inside the repository.
    """

    def __init__(self, config: pytest.Config, ref: str, project: Path) -> None:
        self._config = config
        self._ref = ref
        self._project = project
        self._left_out: set[str] = set()
        """Folders of the deselected skills."""
        self._nothing_left = False

    # First: items that -k and -m deselect must not count as unchanged.
    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Deselect the trials of skills whose folders are unchanged.

        Raises:
            pytest.UsageError: git failed.
        """
        changed = cache(self._changed)
        kept: list[pytest.Item] = []
        unchanged: list[pytest.Item] = []
        for item in items:
            keep = not isinstance(item, TrialItem) or changed(*_folders(item.trial.skill))
            (kept if keep else unchanged).append(item)
        if unchanged:
            self._left_out = {
                str(item.trial.skill.folder) for item in unchanged if isinstance(item, TrialItem)
            }
            self._nothing_left = not kept
            self._config.hook.pytest_deselected(items=unchanged)
            items[:] = kept

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Read from a worker what it deselected; all workers deselect the same."""
        if output := sent_by(node, _KEY):
            left_out, self._nothing_left = output
            self._left_out = set(left_out)

    # First: later hooks print the exit status.
    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Set the exit status to OK if all items were deselected as unchanged."""
        if send_to_controller(self._config, _KEY, (sorted(self._left_out), self._nothing_left)):
            return
        if self._nothing_left and session.exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED:
            session.exitstatus = pytest.ExitCode.OK

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print how many skills were deselected."""
        if self._left_out:
            skills = "1 skill" if len(self._left_out) == 1 else f"{len(self._left_out)} skills"
            nothing = ", so there is nothing to run" if self._nothing_left else ""
            terminalreporter.line(f"left out {skills} unchanged since {self._ref}{nothing}")

    def _changed(self, *folders: Path) -> bool:
        try:
            return any(map(self._is_changed, folders))
        except GitError as error:
            raise pytest.UsageError(f"--upskill-changed-since: {error}") from None

    def _is_changed(self, folder: Path) -> bool:
        commit = commit_then(folder, self._ref, self._project)
        return commit is None or is_changed(commit, folder)


def _folders(skill: Skill) -> tuple[Path, ...]:
    """Return the folders that a skill's trials depend on: the skill's and the case file's."""
    return tuple(dict.fromkeys((skill.folder, skill.case_file.parent)))
