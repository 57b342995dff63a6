"""Gates as tests: reports for whoever reads reports, and items for Allure, which reads items."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import pytest

from pytest_upskill.figures.gate import Gate, TriggerGate
from pytest_upskill.project.messages import safe, safe_line
from pytest_upskill.report.junit.properties import Properties
from pytest_upskill.session.collection.collectors import SkillFile
from pytest_upskill.session.collection.items import CaseFailed

AnyGate = Gate | TriggerGate
_When = Literal["setup", "call", "teardown"]
_Outcome = Literal["passed", "failed", "skipped"]

_LISTENER = "allure_listener"
"""Name under which allure-pytest registers its listener."""


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
    if (listener := session.config.pluginmanager.get_plugin(_LISTENER)) is not None:
        _report_to_allure(session, gate, listener)


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


class _GateItem(pytest.Item):
    """A gate as an item for Allure, which pytest never runs."""

    gate: AnyGate

    def runtest(self) -> None:
        """Skip, fail or pass like the gate, which is already decided."""
        if self.gate.outcome == "skipped":
            pytest.skip(self.gate.text)
        if self.gate.outcome == "failed":
            raise CaseFailed(self.gate.report)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Return the report of the gate."""
        return str(excinfo.value) if style is None else super().repr_failure(excinfo, style)


def _report_to_allure(session: pytest.Session, gate: AnyGate, listener: object) -> None:
    """Call the item hooks of Allure's listener, and of no other plugin."""
    plugins = session.config.pluginmanager
    others = plugins.get_plugins() - {listener}
    # pytest's own makes the report, which the listener reads.
    not_reporting = others - {plugins.get_plugin("runner")}

    def call_hook(hook: str, **arguments: object) -> None:
        left_out = not_reporting if hook == "pytest_runtest_makereport" else others
        plugins.subset_hook_caller(hook, left_out)(item=item, **arguments)

    file = SkillFile.from_parent(session, path=session.config.rootpath / gate.cell.path)
    item = _GateItem.from_parent(file, name=gate.name, nodeid=gate.nodeid)
    item.gate = gate
    call_hook("pytest_runtest_setup")
    ready = pytest.CallInfo.from_call(lambda: None, when="setup")
    call_hook("pytest_runtest_makereport", call=ready)
    call_hook("pytest_runtest_call")
    call = pytest.CallInfo.from_call(item.runtest, when="call")
    call_hook("pytest_runtest_makereport", call=call)
    call_hook("pytest_runtest_teardown", nextitem=None)
    plugins.subset_hook_caller("pytest_runtest_logfinish", others)(
        nodeid=item.nodeid, location=item.location
    )
