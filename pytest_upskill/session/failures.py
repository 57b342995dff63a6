"""Failures and errors on the terminal: shorter where they repeat, or are many."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from copy import copy

import pytest

from pytest_upskill.figures.wording import ANSWER
from pytest_upskill.project.messages import counted

_WITH_ANSWERS = 10
"""Failures of one skill on one model that are printed with their answers."""

_ANSWER_LINES = 20
"""Lines of an answer that are printed."""


class ShorterFailures:
    """Failures and errors on the terminal, shortened without ``-v``.

    The exit code, ``--lf``, JUnit and other reports still see every complete failure and error.
    """

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._style = config.getoption("tbstyle", "auto")
        self._first_with_error: dict[str, str] = {}
        self._without_details = 0
        """Number of failures of which only the first line is printed."""

    def status(self, report: pytest.TestReport) -> tuple[str, str, str] | None:
        """Return a separate category for repeated errors, which are not printed in full."""
        if report.when != "setup" or not report.failed or not hasattr(report, "upskill"):
            return None
        # Not longreprtext: under pytest-xdist it begins with the worker's name.
        cause = _without_numbers(str(report.longrepr))
        first = self._first_with_error.setdefault(cause, report.nodeid)
        return None if first == report.nodeid else ("more errors with the same cause", "E", "ERROR")

    def shorten(self) -> None:
        """Replace the failures that pytest will print by shortened copies."""
        reporter = self._config.pluginmanager.get_plugin("terminalreporter")
        if reporter is None:
            return
        if self._config.get_verbosity() <= 0:
            failed = reporter.stats.get("failed", [])
            failed[:] = self._shorten(failed)

    def print_number(self, reporter: pytest.TerminalReporter) -> None:
        """Print how many failures were shortened, and how to see them."""
        if self._without_details and self._style != "no" and self._config.get_verbosity() == 0:
            failures = counted(self._without_details, "more failure")
            reporter.line(
                f"details of {failures} are left out, after the first "
                f"{_WITH_ANSWERS} of a skill on a model; -v shows all"
            )

    def _shorten(self, reports: Iterable[pytest.TestReport]) -> Iterator[pytest.TestReport]:
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
            if seen[cell] > _WITH_ANSWERS:
                self._without_details += 1
                short.longrepr = report.longrepr.partition("\n")[0]
                short.sections = _without_answers(report)
            else:
                short.sections = [
                    (name, _brief(text, answers, record.result.case) if name == ANSWER else text)
                    for name, text in report.sections
                ]
            yield short


_NUMBER = re.compile(
    r"('[^']*'|HTTP \d+|[\w.-]+:\d+)|\breq_\w+|(?<!\w)(?:\d+(?:[.,]\d+)*(?:ms|s|m|h)?)+(?!\w)"
)
"""Numbers that differ between errors with one cause, and before them what does not."""


def _without_numbers(error: str) -> str:
    """Return an error without counts, seconds and ids, but with names, statuses and ports."""
    label, colon, text = error.partition(": ")
    return label + colon + _NUMBER.sub(lambda match: match[1] or "#", text)


def _without_answers(report: pytest.TestReport) -> list[tuple[str, str]]:
    return [part for part in report.sections if part[0] != ANSWER]


def _brief(answer: str, shown: dict[str, str], case: str) -> str:
    """Return the beginning of a quoted answer, or the case where the same answer is printed.

    Args:
        answer: Quoted answer.
        shown: Answers already printed, with their cases; this answer is added.
        case: Case of the answer.
    """
    first_case = shown.setdefault(answer, case)
    if first_case != case:
        return f"(the same as for {first_case})\n"
    lines = answer.splitlines(keepends=True)
    hidden_lines = len(lines) - _ANSWER_LINES
    # One hidden line would take as much room as the note about it.
    if hidden_lines <= 1:
        return answer
    return "".join(lines[:_ANSWER_LINES]) + f"[... {hidden_lines} more lines; -v shows them]\n"
