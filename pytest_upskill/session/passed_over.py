"""Case files that nobody runs, as no models are chosen."""

from __future__ import annotations

import pytest

_NAME = "upskill-passed-over"


def passed_over(config: pytest.Config) -> PassedOver:
    """Register it with the first file: a run without skills is to have nothing of it."""
    found: PassedOver | None = config.pluginmanager.get_plugin(_NAME)
    if found is None:
        found = PassedOver(config)
        config.pluginmanager.register(found, _NAME)
    return found


class PassedOver:
    """Says, where pytest would say no more than that nothing ran, how to run the skills there."""

    def __init__(self, config: pytest.Config) -> None:
        self.files = 0
        """Case files that were met and not collected, as no models are chosen."""
        self._config = config
        self._deselected = False

    def pytest_deselected(self) -> None:
        """Note that there are other tests: who chose none of them was not looking for skills."""
        self._deselected = True

    def pytest_sessionfinish(self) -> None:
        """Tell the controller of pytest-xdist."""
        output = getattr(self._config, "workeroutput", None)
        if output is not None and not self._deselected:
            output[_NAME] = self.files

    def pytest_terminal_summary(
        self, terminalreporter: pytest.TerminalReporter, exitstatus: int
    ) -> None:
        """Name the option, in a line that fits a terminal."""
        nothing = exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED and not self._deselected
        if nothing and self._config.get_verbosity() > -2:  # noqa: PLR2004  -qq: pytest is mute too
            files = "1 case file" if self.files == 1 else f"{self.files} case files"
            how = "--upskill-models offline runs them"
            terminalreporter.line(f"upskill: no models chosen for {files}: {how}", yellow=True)
