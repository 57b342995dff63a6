"""A hint that case files were skipped because no models are chosen."""

from __future__ import annotations

import pytest

_NAME = "upskill-no-models"


def no_models_hint(config: pytest.Config) -> NoModelsHint:
    """Return the plugin; the first call, for the first case file, registers it."""
    hint: NoModelsHint | None = config.pluginmanager.get_plugin(_NAME)
    if hint is None:
        hint = NoModelsHint(config)
        config.pluginmanager.register(hint, _NAME)
    return hint


class NoModelsHint:
    """Plugin that prints how to run the skipped case files if no test was collected."""

    def __init__(self, config: pytest.Config) -> None:
        self.files = 0
        """Number of case files that were not collected because no models are chosen."""
        self._config = config
        self._deselected = False

    def pytest_deselected(self) -> None:
        """Record that other tests were deselected: then the hint would be wrong."""
        self._deselected = True

    def pytest_sessionfinish(self) -> None:
        """Send the number of files to the pytest-xdist controller."""
        output = getattr(self._config, "workeroutput", None)
        if output is not None and not self._deselected:
            output[_NAME] = self.files

    def pytest_terminal_summary(
        self, terminalreporter: pytest.TerminalReporter, exitstatus: int
    ) -> None:
        """Print the hint, in one line that fits a terminal."""
        no_tests = exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED and not self._deselected
        if no_tests and self._config.get_verbosity() > -2:  # noqa: PLR2004  -qq: pytest prints nothing either
            files = "1 case file" if self.files == 1 else f"{self.files} case files"
            how = "--upskill-models offline runs them"
            terminalreporter.line(f"upskill: no models chosen for {files}: {how}", yellow=True)
