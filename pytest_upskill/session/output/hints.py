"""Hints about skills that did not run: they have no cases, or pytest does not look there."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from pytest_upskill import CASE_FILE
from pytest_upskill.sanitize.safe_text import safe_line
from pytest_upskill.session.collection.case_files import discovery_of
from pytest_upskill.session.output.lines import write
from pytest_upskill.session.worker_output import received_from, send_to_controller

_RUN_REFUSED = (pytest.ExitCode.USAGE_ERROR, pytest.ExitCode.INTERNAL_ERROR)

_KEY = "upskill_hints"

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
        if self._deselected or exitstatus in _RUN_REFUSED or self._config.get_verbosity() < -1:
            return
        if exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED:
            self._print_skills_without_cases(terminalreporter)
        if folders := self._unvisited_folders():
            have, them = ("has", "it") if len(folders) == 1 else ("have", "them")
            text = f"pytest does not look for tests in {', '.join(folders)}, which {have} skills"
            text += f": pass {them} as an argument to run them"
            write(terminalreporter, f"upskill: {text}", yellow=True)

    def _print_skills_without_cases(self, terminalreporter: pytest.TerminalReporter) -> None:
        discovery = discovery_of(self._config)
        names = sorted(
            folder.name
            for folder in map(Path, self._visited)
            if not discovery.skill_has_cases(folder)
        )
        if names:
            have = "has" if len(names) == 1 else "have"
            cure = f"pytest-upskill init SKILL writes a first {CASE_FILE}"
            text = f"{', '.join(names)} {have} no cases: {cure}"
            write(terminalreporter, f"upskill: {text}", yellow=True)

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
