"""Gates as tests: reports without items."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import pytest

from pytest_upskill.figures.gate import Gate, TriggerGate
from pytest_upskill.project.messages import safe, safe_line
from pytest_upskill.report.junit.properties import Properties

AnyGate = Gate | TriggerGate
_When = Literal["setup", "call", "teardown"]
_Outcome = Literal["passed", "failed", "skipped"]


def report_gate(session: pytest.Session, gate: AnyGate, properties: Properties) -> None:
    """Report a gate as if it were a test.

    Args:
        session: The session.
        gate: The gate.
        properties: Its JUnit properties.
    """
    location = (gate.cell.path, 0, f"{gate.cell.title}: {gate.name}")
    hook = session.config.hook
    hook.pytest_runtest_logstart(nodeid=gate.nodeid, location=location)
    for when, outcome, longrepr in _phases(gate):
        report = pytest.TestReport(
            nodeid=gate.nodeid,
            location=location,
            keywords={},
            outcome=outcome,
            longrepr=longrepr,
            when=when,
            user_properties=properties,
            upskill=None,  # marks a report of this plugin; a gate has no trial record
        )
        hook.pytest_runtest_logreport(report=report)
    hook.pytest_runtest_logfinish(nodeid=gate.nodeid, location=location)


def _phases(
    gate: AnyGate,
) -> Iterator[tuple[_When, _Outcome, str | tuple[str, int, str] | None]]:
    """Yield phase, outcome and failure text of a gate's reports; a skipped gate has no call."""
    if gate.outcome == "skipped":
        yield "setup", "skipped", (gate.cell.path, 1, f"Skipped: {safe_line(gate.text)}")
    else:
        yield "setup", "passed", None
        yield "call", gate.outcome, safe(gate.report) if gate.outcome == "failed" else None
    yield "teardown", "passed", None
