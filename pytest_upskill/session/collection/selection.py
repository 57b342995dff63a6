"""Which trials run under ``--upskill-shard`` and ``--upskill-changed-since``."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from pytest_upskill.cases.skill import Skill
from pytest_upskill.project.git import GitError, is_changed, starting_commit
from pytest_upskill.project.messages import counted
from pytest_upskill.session.collection.items import TrialItem
from pytest_upskill.session.options.settings import SETTINGS
from pytest_upskill.session.worker_output import received_from, send_to_controller

_KEY = "upskill_selection"

SELECTION = pytest.StashKey["Selection"]()
"""The plugin; absent without one of the options."""


class Selection:
    """Plugin that deselects the trials of other shards, and those of unchanged skills."""

    def __init__(self, config: pytest.Config) -> None:
        self.may_be_empty = False
        """Whether it is no mistake that no test is left to run."""
        self._config = config
        self._settings = config.stash[SETTINGS]
        self._unchanged: set[str] = set()
        """Folders of the skills that were deselected as unchanged."""
        self.nothing_changed = ""
        """Why there was nothing to run: every skill is unchanged; empty if there was."""

    # First: a shard must not depend on what -k or -m deselect, which is not unchanged either.
    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Deselect trials; other items run in every shard and whatever has changed.

        Raises:
            pytest.UsageError: git failed.
        """
        if self._settings.shard is not None:
            cases = {item: _case(item) for item in items if isinstance(item, TrialItem)}
            mine = cases_of_shard(cases.values(), *self._settings.shard)
            others = [item for item, case in cases.items() if case not in mine]
            self._deselect(others, items)
            self.may_be_empty = bool(others)
        if self._settings.changed_since is not None:
            changed = cache(self._changed)
            trials = [item for item in items if isinstance(item, TrialItem)]
            unchanged = [item for item in trials if not changed(*_folders(item.trial.skill))]
            self._deselect(unchanged, items)
            self._unchanged = {str(item.trial.skill.folder) for item in unchanged}
            if unchanged and not items:
                self.nothing_changed = self._left_out

    def _deselect(self, left_out: list[TrialItem], items: list[pytest.Item]) -> None:
        if left_out:
            self._config.hook.pytest_deselected(items=left_out)
            deselected = set[pytest.Item](left_out)
            items[:] = [item for item in items if item not in deselected]

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Read from a worker what it deselected; all workers deselect the same."""
        if output := received_from(node, _KEY):
            unchanged, self.nothing_changed, self.may_be_empty = output
            self._unchanged = set(unchanged)

    def pytest_sessionfinish(self) -> None:
        """Send what was deselected to the controller."""
        output = sorted(self._unchanged), self.nothing_changed, self.may_be_empty
        send_to_controller(self._config, _KEY, output)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print how many skills were deselected as unchanged."""
        if self._unchanged:
            nothing = ", so there is nothing to run" if self.nothing_changed else ""
            terminalreporter.line(f"left out {self._left_out}{nothing}")

    @property
    def _left_out(self) -> str:
        skills = counted(len(self._unchanged), "skill")
        return f"{skills} unchanged since {self._settings.changed_since}"

    def _changed(self, *folders: Path) -> bool:
        try:
            return any(map(self._is_changed, folders))
        except GitError as error:
            raise pytest.UsageError(f"--upskill-changed-since: {error}") from None

    def _is_changed(self, folder: Path) -> bool:
        assert self._settings.changed_since is not None
        commit = starting_commit(folder, self._settings.changed_since, self._settings.project)
        return commit is None or is_changed(commit, folder)


def cases_of_shard(cases: Iterable[str], number: int, shards: int) -> frozenset[str]:
    """Return the cases of one shard: shards are equal in size, and the same on every machine.

    Cases are ordered by digest, so that adding or removing a case moves few of the others.

    Args:
        cases: Names of all cases; may repeat.
        number: Number of the shard, from 1.
        shards: Number of shards.
    """
    ordered = sorted(set(cases), key=lambda case: hashlib.sha256(case.encode()).digest())
    start, end = ((n * len(ordered)) // shards for n in (number - 1, number))
    return frozenset(ordered[start:end])


def _case(item: TrialItem) -> str:
    """Return the name of a case on a model, whose arms must run in the same shard."""
    return f"{item.case_path}::{item.trial.case.id}[{item.trial.model.label}]"


def _folders(skill: Skill) -> tuple[Path, ...]:
    """Return the folders that a skill's trials depend on: the skill's and the case file's."""
    return tuple(dict.fromkeys((skill.folder, skill.case_file.parent)))
