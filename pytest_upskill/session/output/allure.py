"""Gates in Allure, whose listener needs items, not reports; inactive without ``--alluredir``."""

from __future__ import annotations

from collections.abc import Generator
from functools import partial
from typing import Any

import pytest

from pytest_upskill.cells.gate import Gate
from pytest_upskill.cells.trigger_gate import TriggerGate
from pytest_upskill.session.collection.collectors import SkillFile
from pytest_upskill.session.collection.items import CaseFailed
from pytest_upskill.session.results.results import Results

AnyGate = Gate | TriggerGate

_LISTENER = "allure_listener"
"""Name under which allure-pytest registers its listener."""


class GateItem(pytest.Item):
    """A gate as an item for Allure, which pytest never runs."""

    def runtest(self) -> None:
        """Do nothing: the gate is already decided."""

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Return the report of the gate."""
        return str(excinfo.value) if style is None else super().repr_failure(excinfo, style)


class AllureGates:
    """Plugin that calls the item hooks of Allure's listener, and of no other, for each gate."""

    def __init__(self, config: pytest.Config, results: Results) -> None:
        self._plugins = config.pluginmanager
        self._results = results
        self._root = config.rootpath

    @pytest.hookimpl(wrapper=True)
    def pytest_runtestloop(self, session: pytest.Session) -> Generator[None, object, object]:
        """Report the gates to Allure once they are decided, also if the run was interrupted."""
        try:
            return (yield)
        finally:
            if (listener := self._plugins.get_plugin(_LISTENER)) is not None:
                for gate in self._results.decisions:
                    self._play(session, listener, gate)

    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> pytest.TestReport | None:
        """Make the report of a gate item, which the listener needs."""
        return pytest.TestReport.from_item_and_call(item, call) if _is_gate(item) else None

    def _play(self, session: pytest.Session, listener: object, gate: AnyGate) -> None:
        others = [each for each in self._plugins.get_plugins() if each not in {listener, self}]

        def call_hook(hook: str, **arguments: object) -> None:
            self._plugins.subset_hook_caller(hook, others)(**arguments)

        file = SkillFile.from_parent(session, path=self._root / gate.cell.path)
        item = GateItem.from_parent(file, name=gate.name, nodeid=gate.nodeid)
        call_hook("pytest_runtest_setup", item=item)
        ready = pytest.CallInfo.from_call(_nothing, when="setup")
        call_hook("pytest_runtest_makereport", item=item, call=ready)
        call_hook("pytest_runtest_call", item=item)
        call = pytest.CallInfo.from_call(partial(_end, gate), when="call")
        call_hook("pytest_runtest_makereport", item=item, call=call)
        call_hook("pytest_runtest_teardown", item=item, nextitem=None)
        call_hook("pytest_runtest_logfinish", nodeid=item.nodeid, location=item.location)


def _is_gate(item: pytest.Item) -> bool:
    return isinstance(item, GateItem)


def _nothing() -> None:
    """Do nothing: the setup of a gate."""


def _end(gate: AnyGate) -> None:
    """Skip, fail or pass like the gate."""
    if gate.outcome == "skipped":
        pytest.skip(gate.text)
    if gate.outcome == "failed":
        raise CaseFailed(gate.report)
