"""Lines for pytest's reporter: safe to print, and wrapped on a terminal."""

from __future__ import annotations

import pytest

from pytest_upskill.figures.wording import wrap
from pytest_upskill.project.messages import safe_line

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
