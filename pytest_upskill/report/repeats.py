"""One trouble told once: what stops a model fails all its trials with the same words."""

from __future__ import annotations

import pytest


class Repeats:
    """Shows the first trial that failed to be measured, and counts those with the same error.

    For the terminal alone: to the exit code, ``--lf``, JUnit and other reports each is an error.
    """

    def __init__(self) -> None:
        self._first: dict[str, str] = {}

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(self, report: pytest.TestReport) -> tuple[str, str, str] | None:
        """Count a repeated error apart from those that are printed in full."""
        if report.when != "setup" or not report.failed or not hasattr(report, "upskill"):
            return None
        # Not longreprtext: under pytest-xdist that begins with the worker's name.
        first = self._first.setdefault(str(report.longrepr), report.nodeid)
        return None if first == report.nodeid else ("more of the same", "E", "ERROR")
