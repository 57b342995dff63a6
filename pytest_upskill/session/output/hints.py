"""Hints about skills that did not run: without cases, or where pytest does not look."""

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

_NOTHING_RAN = (pytest.ExitCode.USAGE_ERROR, pytest.ExitCode.INTERNAL_ERROR)

_KEY = "upskill_hints"

_HIDDEN = (".*/skills/*/SKILL.md", "skills/.*/*/SKILL.md", ".*/*/SKILL.md")
"""Places of skills, relative to a given folder, that pytest does not search by itself."""


class Hints:
    """Plugin that records the skill folders seen in collection, and names the others."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._met: set[str] = set()
        """Folders that contain a ``SKILL.md``."""
        self._deselected = False
        """Whether items were deselected, so that skills are missing on purpose."""

    def pytest_collect_file(self, file_path: Path) -> None:
        """Record the folder of a ``SKILL.md``."""
        if file_path.name == "SKILL.md":
            self._met.add(str(file_path.parent))

    def pytest_deselected(self) -> None:
        """Record that items were collected and deselected."""
        self._deselected = True

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Read what a pytest-xdist worker collected; all workers collect the same."""
        if output := received_from(node, _KEY):
            folders, deselected = output
            self._met.update(folders)
            self._deselected |= deselected

    def pytest_sessionfinish(self) -> None:
        """Send what this process collected to the pytest-xdist controller."""
        send_to_controller(self._config, _KEY, (sorted(self._met), self._deselected))

    def pytest_terminal_summary(
        self, terminalreporter: pytest.TerminalReporter, exitstatus: int
    ) -> None:
        """Print which skills have no cases if no test was collected, and which were missed."""
        if self._deselected or exitstatus in _NOTHING_RAN or self._config.get_verbosity() < -1:
            return
        if exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED:
            self._without_cases(terminalreporter)
        if homes := self._not_entered():
            have, them = ("has", "it") if len(homes) == 1 else ("have", "them")
            text = f"pytest does not look for tests in {', '.join(homes)}, which {have} skills"
            text += f": pass {them} as an argument to run them"
            write(terminalreporter, f"upskill: {text}", yellow=True)

    def _without_cases(self, terminalreporter: pytest.TerminalReporter) -> None:
        discovery = discovery_of(self._config)
        names = sorted(
            folder.name for folder in map(Path, self._met) if not discovery.skill_has_cases(folder)
        )
        if names:
            have = "has" if len(names) == 1 else "have"
            cure = f"pytest-upskill init SKILL writes a first {CASE_FILE}"
            text = f"{', '.join(names)} {have} no cases: {cure}"
            write(terminalreporter, f"upskill: {text}", yellow=True)

    def _not_entered(self) -> list[str]:
        """Find the hidden folders with further skills below those that pytest was given."""
        met = {Path(folder).resolve() for folder in self._met}
        start = self._config.invocation_params.dir
        given = {start / argument.partition("::")[0] for argument in self._config.args}
        found = {
            skill.parents[1]
            for folder in given
            for place in _HIDDEN
            for skill in folder.glob(place)
            # A link to a skill that is run elsewhere is not missed.
            if skill.parent.resolve() not in met
        }
        return sorted(safe_line(os.path.relpath(folder, start)) for folder in found)
