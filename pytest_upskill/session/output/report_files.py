"""Report files of a session, and annotations and summary in GitHub Actions."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from pytest_upskill.completions.changed_recordings import changed_recordings
from pytest_upskill.report.document import Report
from pytest_upskill.report.files.github import in_github_actions, write_for_github
from pytest_upskill.report.files.write import write
from pytest_upskill.sanitize.safe_text import safe_line
from pytest_upskill.session.options.settings import Settings, runs_tests
from pytest_upskill.session.output.session_report import report_of
from pytest_upskill.session.resources import RESOURCES
from pytest_upskill.session.results.cells import unmeasured
from pytest_upskill.session.results.results import Results

_WHOLE = (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.NO_TESTS_COLLECTED)
_NOTHING_RAN = (pytest.ExitCode.USAGE_ERROR, pytest.ExitCode.INTERNAL_ERROR)
_SHOWN_RECORDINGS = 11
"""Lines about changed recordings without -v: the total, and ten recordings."""


class Files:
    """Plugin that writes the report files and prints their names."""

    def __init__(self, config: pytest.Config, settings: Settings, results: Results) -> None:
        self._config = config
        self._settings = settings
        self._results = results
        self._written: list[Path] = []
        self._problems: list[str] = []
        self._unread = False
        self._recordings: list[str] = []
        """Lines about the recordings of a replay that the branch changed."""

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Record that a file could not be collected."""
        self._unread |= report.failed

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Write the reports; if one cannot be written, set the exit status to an error."""
        idle = self._settings.dry_run or not runs_tests(self._config)
        if not idle and self._settings.cache_mode == "replay":
            refs = (self._settings.ref, self._settings.changed_since)
            cache = self._config.stash[RESOURCES].cache
            self._recordings = changed_recordings(cache, os.environ, refs)
        wanted = self._settings.makes_files or in_github_actions(os.environ)
        if idle or not wanted or exitstatus in _NOTHING_RAN:
            return
        no_money = self._config.stash[RESOURCES].budget.stopped
        # Any other status is Ctrl-C's, or that of whoever called pytest.exit().
        stopped = exitstatus not in _WHOLE or session.shouldfail or no_money
        report = self._report(complete=not (stopped or self._unread))
        for name, file in self._settings.reports.items():
            self._write(session, file, partial(write, report, name, file))
        if (folder := self._settings.runs_dir) and (report.gates or report.trigger_gates):
            # Imported here: most runs are in no history.
            from pytest_upskill.report.history.log import log_run

            self._write(session, folder, partial(log_run, report, folder))
        self._problems += write_for_github(report, os.environ)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the written files, problems, and changed recordings."""
        for problem in self._problems:
            terminalreporter.line(safe_line(problem), red=True)
        # Also with -q: an edited recording can make any test pass.
        most = None if self._config.get_verbosity() > 0 else _SHOWN_RECORDINGS
        for line in self._recordings[:most]:
            terminalreporter.line(safe_line(line), yellow=True)
        if more := len(self._recordings[most:]) if most else 0:
            terminalreporter.line(f"and {more} more recordings: -v lists them", yellow=True)
        if self._config.get_verbosity() >= 0:
            for file in self._written:
                terminalreporter.line(safe_line(f"upskill report: {file}"))

    def _write(self, session: pytest.Session, path: Path, write: Callable[[], list[Path]]) -> None:
        try:
            self._written += write()
        except OSError as error:
            self._problems.append(f"cannot write {path}: {error.strerror}")
            session.exitstatus = session.exitstatus or pytest.ExitCode.USAGE_ERROR

    def _report(self, *, complete: bool) -> Report:
        return report_of(
            self._results.gates,
            self._results.trigger_gates,
            self._settings,
            self._config.stash[RESOURCES].compilers,
            str(self._config.rootpath),
            unmeasured=unmeasured(self._results.records),
            recordings=self._recordings,
            complete=complete,
        )
