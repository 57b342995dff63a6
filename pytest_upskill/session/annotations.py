"""Annotations: how GitHub Actions marks what failed and what was not measured, at its lines."""

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from pytest_upskill.figures.comparison import note_of_changes
from pytest_upskill.figures.triggers import DESCRIBE
from pytest_upskill.project.messages import safe_line
from pytest_upskill.report.document import Report
from pytest_upskill.session.results import TrialRecord

_SAME = "pytest_github_actions_annotate_failures"
"""A plugin that annotates every failed test."""

_ERROR = "::error title=pytest-upskill::"
_WARNING = "::warning title=pytest-upskill::"

_PLACE = re.compile(r"([^:]*):(\d+):")
"""With what a message about a file begins: path and line."""


def annotations(
    reporter: pytest.TerminalReporter, report: Report, reasons: Iterable[str]
) -> Iterator[str]:
    """Yield the commands of GitHub Actions for a session; none elsewhere.

    Args:
        reporter: pytest's reporter.
        report: The report.
        reasons: Why nothing or not everything was measured.
    """
    if not os.environ.get("GITHUB_ACTIONS"):
        return
    config = reporter.config
    if not config.pluginmanager.has_plugin(_SAME):
        yield from _failures(reporter)
    for path, line, text in warnings_of(reporter):
        yield f"::warning {_place(config.rootpath / path, line, path)}::{_escaped(text)}"
    yield from (f"{_ERROR}{_escaped(reason)}" for reason in reasons)
    for session in report.sessions:
        yield from (f"{_WARNING}{_escaped(line)}" for line in session.without_trials)
    changes = dict.fromkeys((gate.cell.path, note_of_changes(gate.cell)) for gate in report.gates)
    for path, change in changes:
        if change:
            file = config.rootpath / path.partition("::")[0]
            yield f"::warning {_place(file, 1, path)}::{_escaped(change)}"


def warnings_of(reporter: pytest.TerminalReporter | None) -> Iterator[tuple[str, int, str]]:
    """Yield path, line and text of each warning about a file of cases or of a skill."""
    for warning in reporter.stats.get("warnings", ()) if reporter else ():
        path, line = warning.fslocation or ("", 0)
        text = warning.message.partition("PytestWarning: ")[2].strip()
        if text and not path.endswith(".py"):
            yield path, line, text


def refusal(error: pytest.UsageError) -> Iterator[str]:
    """Yield the command of GitHub Actions for an error that ends a run before it begins."""
    if os.environ.get("GITHUB_ACTIONS"):
        yield f"{_ERROR}{'%0A'.join(map(_escaped, str(error).splitlines()))}"


def _failures(reporter: pytest.TerminalReporter) -> Iterator[str]:
    """Yield commands that mark failed cases at their lines, and failed gates at the skills."""
    failed = [report for kind in ("failed", "error") for report in reporter.stats.get(kind, ())]
    ours = [report for report in failed if not report.nodeid.partition("::")[0].endswith(".py")]
    # GitHub shows no more errors of a step.
    for report in ours[:10]:
        lines = str(report.longrepr).strip().splitlines() or [""]
        path, line, _ = report.location or (report.nodeid, None, "")
        file = reporter.config.rootpath / path
        record: TrialRecord | None = getattr(report, "upskill", None)
        if record is not None:
            chooses = record.key.chooses and report.when == "call"
            lines[0] += record.cell.history_clause
            lines[1:] = [f"next: {DESCRIBE}"] if chooses else []
        elif not hasattr(report, "upskill"):  # a file that cannot be read
            del lines[1:]
            if place := _PLACE.match(lines[0]):
                named, line = reporter.config.invocation_params.dir / place[1], int(place[2]) - 1
                file = named if named.is_file() else file
        elif report.when == "call" and (skill := file.with_name("SKILL.md")).is_file():  # a gate
            file = skill
        message = "%0A".join(map(_escaped, lines))
        yield f"::error {_place(file, (line or 0) + 1, report.nodeid)}::{message}"


def _place(file: Path, line: int, title: str) -> str:
    name = os.path.relpath(file, os.environ.get("GITHUB_WORKSPACE"))
    return f"file={_property(name)},line={line},title={_property(title)}"


def _escaped(text: str) -> str:
    """Escape a text as toolkit/packages/core/src/command.ts does, so that it stays one command."""
    return safe_line(text[:1000]).replace("%", "%25")


def _property(text: str) -> str:
    return _escaped(text).replace(":", "%3A").replace(",", "%2C")
