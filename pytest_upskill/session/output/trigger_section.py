"""The section about triggers in the terminal."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from pytest_upskill.cells.thresholds import Thresholds
from pytest_upskill.cells.trigger_gate import TriggerGate
from pytest_upskill.report.terminal.trigger_table import (
    TRIGGER_LEGEND,
    trigger_notes,
    trigger_table,
)
from pytest_upskill.sanitize.safe_text import safe_line
from pytest_upskill.session.output.lines import write

_QUIETEST = -2
"""Verbosity of -qq, with which nothing is printed."""


def write_triggers(
    reporter: pytest.TerminalReporter, gates: Sequence[TriggerGate], thresholds: Thresholds
) -> None:
    """Print a line for each skill on each model; -v adds the queries, -q leaves notes out."""
    verbosity = reporter.config.get_verbosity()
    if verbosity <= _QUIETEST:
        return
    reporter.section("triggers: is the skill chosen?", "=", bold=True)
    width = reporter.config.get_terminal_writer().fullwidth
    for line, gate in trigger_table(gates, width, queries=verbosity > 0):
        reporter.line(safe_line(line), red=gate is not None and gate.outcome == "failed")
    if verbosity < 0:
        return
    write(reporter, TRIGGER_LEGEND)
    for note in trigger_notes(gates, thresholds):
        write(reporter, note)
