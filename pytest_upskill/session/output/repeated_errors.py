"""Shorter terminal output for repeated errors and long lists of failures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from copy import copy

import pytest

from pytest_upskill.cells.wording import ANSWER

_FULL = 10
"""Failures of one skill on one model that are printed with their answers."""

_LINES = 20
"""Lines of an answer that are printed."""


class RepeatedErrors:
    """Plugin that shortens failures and errors on the terminal, unless ``-v`` is given.

    The exit code, ``--lf``, JUnit and other reports still see every complete failure and error.
    """

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._first: dict[str, str] = {}
        self._brief = 0
        """Number of failures of which only the first line is printed."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(self, report: pytest.TestReport) -> tuple[str, str, str] | None:
        """Return a separate category for repeated errors, which are not printed in full."""
        if report.when != "setup" or not report.failed or not hasattr(report, "upskill"):
            return None
        # Not longreprtext: under pytest-xdist it begins with the worker's name.
        first = self._first.setdefault(str(report.longrepr), report.nodeid)
        return None if first == report.nodeid else ("more errors with the same cause", "E", "ERROR")

    # First: pytest's reporter prints the failures after all other plugins.
    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self) -> None:
        """Replace the failures to be printed by shortened copies."""
        reporter = self._config.pluginmanager.get_plugin("terminalreporter")
        if reporter is not None and self._config.get_verbosity() <= 0:
            failed = reporter.stats.get("failed", [])
            failed[:] = list(self._shortened(failed))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print how many failures were shortened, and how to see them."""
        in_full = self._config.getoption("tbstyle", "auto") not in {"line", "no"}
        if self._brief and in_full and self._config.get_verbosity() == 0:
            what = "1 more failure" if self._brief == 1 else f"{self._brief} more failures"
            terminalreporter.line(
                f"details of {what} are left out, after the first {_FULL} of a skill on a model; "
                f"-v shows all"
            )

    def _shortened(self, reports: Iterable[pytest.TestReport]) -> Iterator[pytest.TestReport]:
        seen: Counter[tuple[str, str]] = Counter()
        answers: dict[str, str] = {}
        for report in reports:
            record = getattr(report, "upskill", None)
            if record is None or not isinstance(report.longrepr, str):
                yield report
                continue
            cell = record.path, record.result.model
            seen[cell] += 1
            short = copy(report)
            if seen[cell] > _FULL:
                self._brief += 1
                short.longrepr = report.longrepr.partition("\n")[0]
                short.sections = [part for part in report.sections if part[0] != ANSWER]
            else:
                short.sections = [
                    (name, _brief(text, answers, record.result.case) if name == ANSWER else text)
                    for name, text in report.sections
                ]
            yield short


def _brief(answer: str, shown: dict[str, str], case: str) -> str:
    """Return the beginning of a quoted answer, or the case where the same answer is printed.

    Args:
        answer: Quoted answer.
        shown: Answers already printed, with their cases; this answer is added.
        case: Case of the answer.
    """
    if (first := shown.setdefault(answer, case)) != case:
        return f"(the same as for {first})\n"
    lines = answer.splitlines(keepends=True)
    more = len(lines) - _LINES
    if more <= 1:
        return answer
    return "".join(lines[:_LINES]) + f"[... {more} more lines; -v shows them]\n"
