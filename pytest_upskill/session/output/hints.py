"""Hints about skills that did not run: they have no cases, or pytest does not look there."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from pytest_upskill import CASE_FILE
from pytest_upskill.project.git import GitError, is_changed, starting_commit
from pytest_upskill.project.messages import safe_line
from pytest_upskill.project.project import project_folder
from pytest_upskill.session.collection.case_files import discovery_of
from pytest_upskill.session.options.settings import SETTINGS
from pytest_upskill.session.output.lines import write
from pytest_upskill.session.worker_output import received_from, send_to_controller

_RUN_REFUSED = (pytest.ExitCode.USAGE_ERROR, pytest.ExitCode.INTERNAL_ERROR)

_KEY = "upskill_hints"


def _is_changed(folder: Path, ref: str, root: Path) -> bool:
    """Return whether a skill is new, or differs from its version at a git ref."""
    with suppress(GitError):  # its cases would have been refused
        commit = starting_commit(folder, ref, project_folder(root))
        return commit is None or is_changed(commit, folder)
    return False


_HIDDEN = (".*/skills/*/SKILL.md", "skills/.*/*/SKILL.md", ".*/*/SKILL.md")
"""Patterns of skills, relative to an argument, that pytest does not visit by itself."""


class Hints:
    """Plugin that records which skill folders pytest visits, and prints which it did not."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._visited: set[str] = set()
        """Folders that contain a ``SKILL.md``."""
        self._deselected = False
        """Whether items were deselected, so that skills are missing on purpose."""

    def pytest_collect_file(self, file_path: Path) -> None:
        """Record the folder of a ``SKILL.md``."""
        if file_path.name == "SKILL.md":
            self._visited.add(str(file_path.parent))

    def pytest_deselected(self) -> None:
        """Record that items were collected and deselected."""
        self._deselected = True

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Read what a pytest-xdist worker collected; all workers collect the same."""
        if output := received_from(node, _KEY):
            folders, deselected = output
            self._visited.update(folders)
            self._deselected |= deselected

    def pytest_sessionfinish(self) -> None:
        """Send what this process collected to the pytest-xdist controller."""
        send_to_controller(self._config, _KEY, (sorted(self._visited), self._deselected))

    def pytest_terminal_summary(
        self, terminalreporter: pytest.TerminalReporter, exitstatus: int
    ) -> None:
        """Print which skills have no cases if no test was collected, and which were missed."""
        if exitstatus in _RUN_REFUSED or self._config.get_verbosity() < -1:
            return
        none_ran = exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED and not self._deselected
        if none_ran or self._since() is not None:
            for line in self.without_cases():
                write(terminalreporter, f"upskill: {line}", yellow=True)
        if not self._deselected and (folders := self._unvisited_folders()):
            have, them = ("has", "it") if len(folders) == 1 else ("have", "them")
            text = f"pytest does not look for tests in {', '.join(folders)}, which {have} skills"
            text += f": pass {them} as an argument to run them"
            write(terminalreporter, f"upskill: {text}", yellow=True)

    def without_cases(self) -> Iterator[str]:
        """Yield which visited skills have no cases; in a pull request, which of the changed."""
        discovery, since = discovery_of(self._config), self._since()
        folders = sorted(
            (
                folder
                for folder in map(Path, self._visited)
                if not discovery.skill_has_cases(folder)
                and (since is None or _is_changed(folder, since, self._config.rootpath))
            ),
            key=lambda folder: folder.name,
        )
        if folders:
            have = "has" if len(folders) == 1 else "have"
            shown = os.path.relpath(folders[0], self._config.invocation_params.dir)
            skill = shown if len(folders) == 1 else "SKILL"
            cure = f"pytest-upskill init {skill} writes a first {CASE_FILE}"
            names = ", ".join(folder.name for folder in folders)
            yield safe_line(f"{names} {have} no cases: {cure}")

    def _since(self) -> str | None:
        """Return the git ref with which a pull request is compared, None if there is none."""
        settings = self._config.stash.get(SETTINGS, None)
        return None if settings is None else settings.ref or settings.changed_since

    def _unvisited_folders(self) -> list[str]:
        """Return the hidden folders with unvisited skills, below the arguments of pytest."""
        visited = {Path(folder).resolve() for folder in self._visited}
        start = self._config.invocation_params.dir
        arguments = {start / argument.partition("::")[0] for argument in self._config.args}
        unvisited = {
            skill.parents[1]
            for folder in arguments
            for pattern in _HIDDEN
            for skill in folder.glob(pattern)
            # A link to a skill that was visited elsewhere is no unvisited skill.
            if skill.parent.resolve() not in visited
        }
        return sorted(safe_line(os.path.relpath(folder, start)) for folder in unvisited)
