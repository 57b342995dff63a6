"""Skills without cases, named where pytest would say no more than that nothing ran."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pytest_upskill import CASE_FILE
from pytest_upskill.formats.discovery import KnownCases
from pytest_upskill.session.output.terminal import write
from pytest_upskill.session.settings import places_of
from pytest_upskill.session.worker_output import tell, told

_KEY = "upskill_caseless"


class Caseless:
    """Notes the skills that are met while a process collects, and speaks where is reported."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._met: set[str] = set()
        """Their folders."""
        self._deselected = False

    def pytest_collect_file(self, file_path: Path) -> None:
        """Note a skill, whose cases are looked for once nothing has run."""
        if file_path.name == "SKILL.md":
            self._met.add(str(file_path.parent))

    def pytest_deselected(self) -> None:
        """Note that there was something to run."""
        self._deselected = True

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Hear from a worker of pytest-xdist what it met; all meet the same."""
        self._met.update(told(node, _KEY) or ())

    def pytest_sessionfinish(self) -> None:
        """Tell the controller of pytest-xdist."""
        if not self._deselected:
            tell(self._config, _KEY, sorted(self._met))

    def pytest_terminal_summary(
        self, terminalreporter: pytest.TerminalReporter, exitstatus: int
    ) -> None:
        """Say what is missing, and where it goes."""
        if exitstatus != pytest.ExitCode.NO_TESTS_COLLECTED or self._deselected:
            return
        known = KnownCases(places_of(self._config))
        names = sorted(folder.name for folder in map(Path, self._met) if not known.has(folder))
        if names:
            have = "has" if len(names) == 1 else "have"
            text = f"{', '.join(names)} {have} no cases: write {CASE_FILE} beside SKILL.md"
            write(terminalreporter, f"upskill: {text}", yellow=True)
