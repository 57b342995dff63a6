"""Lines on the terminal; warnings about files, grouped by cause: many may repeat one mistake."""

from __future__ import annotations

import re
import warnings
from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

import pytest

from pytest_upskill.figures.wording import wrap
from pytest_upskill.project.messages import listed, safe_line

_QUOTED = re.compile(r"'[^']*'|\[\d+\]")
"""Parts in which warnings with the same cause may differ: quoted names and list indices."""

_PLACE = re.compile(r"(?P<path>.*?)(?::(?P<line>\d+))?(?::\d+)?", re.DOTALL)
"""``path``, ``path:line`` or ``path:line:column``; a colon may also be part of the path."""

_SHOWN_PLACES = 3


QUIETEST = -2
"""Verbosity of -qq, with which pytest prints no summary either."""


def write(reporter: pytest.TerminalReporter, text: str, **markup: bool) -> None:
    """Print a line, broken by ``lines_of``."""
    for line in lines_of(text, reporter.config):
        reporter.line(line, **markup)


def lines_of(text: str, config: pytest.Config) -> list[str]:
    """Return a safe line, wrapped on a terminal; in a log it stays one line, for searches."""
    text = safe_line(text)
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None or not reporter.isatty:
        return [text]
    return wrap(text, config.get_terminal_writer().fullwidth)


class _Warning(NamedTuple):
    place: str
    path: str
    line: int
    """Line number from 1; also 1 if the warning is about the whole file."""
    text: str
    message: str
    """Text of the single warning; pytest prints path and line before it."""


class GroupedWarnings:
    """Plugin that collects warnings while files are read, and issues one for each cause.

    Warning filters (``-W``) apply to each collected warning.
    """

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._by_cause: defaultdict[str, list[_Warning]] = defaultdict(list)
        """Collected warnings by cause."""

    def note(self, place: str, text: str, *, case: str = "") -> None:
        """Add a warning.

        Args:
            place: ``path``, ``path:line`` or ``path:line:column``.
            text: What is wrong there.
            case: Id of the case; empty if the warning is about the file.

        Raises:
            pytest.PytestWarning: The user's filters turn the warning into an error.
        """
        if not self._config.pluginmanager.has_plugin("warnings"):
            return
        place, text = safe_line(place), safe_line(text)
        match = _PLACE.fullmatch(place)
        assert match is not None  # the path may be any text
        path, line = match["path"], int(match["line"] or 1)
        about = case or ("" if place == f"{path}:{line}" else place)
        message = f"{about}: {text}" if about else text
        with warnings.catch_warnings(record=True) as recorded:
            warnings.warn_explicit(pytest.PytestWarning(message), None, path, line)
        if recorded:
            self._by_cause[_QUOTED.sub("", text)].append(_Warning(place, path, line, text, message))

    def note_lines(self, lines: Iterable[str]) -> list[str]:
        """Add warnings of the form ``place: text``; return those that filters turn into errors."""
        errors = []
        for line in lines:
            place, _, text = line.partition(": ")
            try:
                self.note(place, text)
            except pytest.PytestWarning:
                errors.append(line)
        return errors

    @pytest.hookimpl(trylast=True)
    def pytest_collection_finish(self) -> None:
        """Issue the warnings of collection, under pytest-xdist in the first worker only."""
        worker = getattr(self._config, "workerinput", {"workerid": "gw0"})["workerid"]
        if worker == "gw0":
            self._issue()
        self._by_cause.clear()

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self) -> None:
        """Issue the warnings of the test run."""
        self._issue()

    def _issue(self) -> None:
        most = None if self._config.get_verbosity() > 0 else _SHOWN_PLACES
        for similar in self._by_cause.values():
            first = similar[0]
            message = pytest.PytestWarning(_message(similar, most))
            self._config.hook.pytest_warning_recorded.call_historic(
                kwargs={
                    "warning_message": warnings.WarningMessage(
                        message, pytest.PytestWarning, first.path, first.line, line=""
                    ),
                    "nodeid": "",
                    "when": "collect",
                    "location": None,
                }
            )


GROUPED_WARNINGS = pytest.StashKey[GroupedWarnings]()


def _message(similar: list[_Warning], most: int | None) -> str:
    """Return one message for warnings of one cause: ``... (5 times: a:1, b:1, c:1 and 2 more)``."""
    first = similar[0]
    if len(similar) == 1:
        return first.message
    places = list(dict.fromkeys(warning.place for warning in similar))
    alike = " and the like" if any(warning.text != first.text for warning in similar) else ""
    return f"{first.text}{alike} ({len(similar)} times: {listed(places, most)})"
