"""Reports of Allure, which follows items instead of pytest's reports."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conftest import Run, WriteSkill
from tests.scripted_model import Script

# As allure-pytest's: it follows items, not reports, and registers under this name.
LISTENER = """
import json
from pathlib import Path

import pytest


class Listener:
    def __init__(self):
        self.status = {}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item, call):
        report = yield
        status = report.outcome
        if call.excinfo and report.failed:
            failed = isinstance(call.excinfo.value, (AssertionError, pytest.fail.Exception))
            status = "failed" if failed else "broken"
        # A call counts only for what was set up.
        if report.when == "setup" or self.status.get(item.nodeid) == "passed":
            self.status[item.nodeid] = status
        return report

    def pytest_runtest_logfinish(self, nodeid):
        if nodeid in self.status:
            file = Path("allure", nodeid.rpartition("::")[2] + ".json")
            file.write_text(json.dumps(self.status.pop(nodeid)))


def pytest_configure(config):
    config.pluginmanager.register(Listener(), "allure_listener")
"""


@pytest.mark.parametrize(
    ("answers", "option", "case", "gate"),
    [
        ("+++++ -----", "-v", "passed", "passed"),
        ("----- -----", "--upskill-min-lift=0.5", "failed", "failed"),
        ("+++++ -----", "-k=with_skill", "passed", "skipped"),
    ],
)
def test_allure_has_every_gate_once_and_no_failed_case_is_broken(
    run: Run,
    script: Script,
    pytester: pytest.Pytester,
    *,
    answers: str,
    option: str,
    case: str,
    gate: str,
) -> None:
    pytester.mkdir("allure")
    pytester.makeconftest(LISTENER)

    result = run(*script(one=answers), option)

    status = {file.stem: json.loads(file.read_text()) for file in Path("allure").iterdir()}
    assert status["one[haiku-with_skill]"] == case
    assert status["gate[haiku]"] == gate
    assert result.parseoutcomes().get("failed", 0) == (2 if gate == "failed" else 0)


def test_allure_has_the_gates_of_triggers(
    run_once: Run, write_skill: WriteSkill, pytester: pytest.Pytester
) -> None:
    pytester.mkdir("allure")
    pytester.makeconftest(LISTENER)
    write_skill({"id": "bill", "input": "Facts about billing.", "should_trigger": True})

    run_once("--upskill-models", "offline", "skills")

    status = {file.stem: json.loads(file.read_text()) for file in Path("allure").iterdir()}
    assert status == {"bill[offline-trigger]": "passed", "trigger-gate[offline]": "skipped"}
