"""Lines on the terminal; warnings about files, grouped by cause: many may repeat one mistake."""

import re
import warnings
from collections import defaultdict
from collections.abc import Iterable

import pytest

from pytest_upskill.figures.wording import wrap
from pytest_upskill.project.messages import listed, safe_line

_QUOTED = re.compile(r"'[^']*'|\[\d+\]")
"""Parts in which warnings with the same cause may differ: quoted names and list indices."""

_PLACE = re.compile(r"(?P<path>.*?)(?::(?P<line>\d+))?(?::\d+)?", re.DOTALL)
"""``path``, ``path:line`` or ``path:line:column``; a colon may also be part of the path."""


RUN_REFUSED = (pytest.ExitCode.USAGE_ERROR, pytest.ExitCode.INTERNAL_ERROR)
"""How pytest ends where it has run nothing to report."""
QUIETEST = -2
"""Verbosity of -qq, with which pytest prints no summary either."""


def write(reporter: pytest.TerminalReporter, text: str, **markup: bool) -> None:
    """Print a line, broken by ``lines_of``."""
    for line in lines_of(text, reporter.config):
        reporter.line(line, **markup)


def begin_line(reporter: pytest.TerminalReporter) -> None:
    """Begin a line, whatever pytest has written last."""
    reporter.ensure_newline()
    writer = reporter.config.get_terminal_writer()
    if writer.width_of_current_line:  # with pytest-xdist, letters have no path before them
        writer.line()


def lines_of(text: str, config: pytest.Config) -> list[str]:
    """Return a safe line, wrapped on a terminal; in a log it stays one line, for searches."""
    text = safe_line(text)
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None or not reporter.isatty:
        return [text]
    return wrap(text, config.get_terminal_writer().fullwidth)


class GroupedWarnings:
    """Plugin that collects warnings while files are read, and issues one for each cause.

    Warning filters (``-W``) apply to each collected warning.
    """

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._by_cause = defaultdict[str, list[tuple[str, str, warnings.WarningMessage]]](list)
        """Places, texts and the single warnings, by cause."""
        self._noted = set[tuple[str, str, str]]()

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
        # pytest prints path and line before the message.
        if (place, text, case) in self._noted:
            return  # a skill has one SKILL.md for all of its case files
        about = case or ("" if place == f"{path}:{line}" else place)
        message = f"{about}: {text}" if about else text
        with warnings.catch_warnings(record=True) as recorded:
            warnings.warn_explicit(pytest.PytestWarning(message), None, path, line)
        self._noted.add((place, text, case))
        for warning in recorded:
            self._by_cause[_QUOTED.sub("", text)].append((place, text, warning))

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
        most = None if self._config.get_verbosity() > 0 else 3
        for similar in self._by_cause.values():
            _, text, warning = similar[0]
            warning.line = ""  # a line of the file says no more
            if len(similar) > 1:
                places = [*dict.fromkeys(place for place, _, _ in similar)]
                alike = " and the like" if any(other != text for _, other, _ in similar) else ""
                text += f"{alike} ({len(similar)} times: {listed(places, most)})"
                warning.message = pytest.PytestWarning(text)
            said = {"warning_message": warning, "nodeid": "", "when": "collect", "location": None}
            self._config.hook.pytest_warning_recorded.call_historic(kwargs=said)


GROUPED_WARNINGS = pytest.StashKey[GroupedWarnings]()
