"""Workers change no figure and send nothing twice."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from pytest_upskill.grading.grade import Answer
from pytest_upskill.session.xdist import Handover
from tests.conftest import QUESTION, UNTESTED_PLUGINS, WriteSkill
from tests.junit import cases_of, properties, suite
from tests.loopback import Loopback, Received, Reply

LATENCY = "upskill.latency_s"
CASES = [
    {"id": f"case-{n}", "input": f"{QUESTION} ({n})", "expected": {"contains": ["37", str(n)]}}
    for n in range(6)
]
DISTRIBUTIONS = [
    ("-n2",),
    ("-n4", "--dist", "worksteal"),
    ("-n2", "--dist", "loadgroup"),
]


def answer(received: Received) -> str:
    """Answer with the fact where the skill is there, and with the number of every even case."""
    number = re.search(r"\((\d)\)", received.user)
    assert number is not None
    fact = "37" if "37" in received.system else "nothing"
    return f"{fact} {number[1] if int(number[1]) % 2 == 0 else ''}"


def spread(pytester: pytest.Pytester, *args: str | Path) -> pytest.RunResult:
    return pytester.runpytest_inprocess(*UNTESTED_PLUGINS, "-W", "error", *args)


def figures(xml: Path) -> dict[str, Any]:
    """Return everything in JUnit XML that does not depend on the clock."""
    return {
        case.attrib["classname"] + case.attrib["name"]: {
            "properties": timeless(properties(case)),
            "failure": [each.attrib["message"] for each in case.findall("failure")],
            "answer": [each.text for each in case.findall("system-out")],
        }
        for case in suite(xml).findall("testcase")
    }


def timeless(found: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in found.items() if not name.startswith(LATENCY)}


def announced(result: pytest.RunResult) -> list[str]:
    """Return what is said before the first test."""
    return [line for line in result.outlines if line.startswith("upskill: ")]


def table(result: pytest.RunResult) -> list[str]:
    lines = result.outlines
    start = next(place for place, line in enumerate(lines) if line.startswith("model "))
    return lines[start : lines.index(next(line for line in lines[start:] if line[:2] == "=="))]


@pytest.mark.parametrize("args", DISTRIBUTIONS, ids=" ".join)
def test_workers_change_no_figure_and_ask_nothing_twice(
    pytester: pytest.Pytester, write_skill: WriteSkill, loopback: Loopback, args: tuple[str, ...]
) -> None:
    loopback.answer = answer
    write_skill(*CASES)
    write_skill(*CASES, name="shipping")
    url = loopback.openai_url
    models = ("--upskill-models", f"a=x@{url},b=y@{url}", "--upskill-cache", "off", "-v", "skills")
    alone = spread(pytester, "-n0", "--junitxml=alone.xml", *models)
    asked_alone = Counter(json.dumps(received.body) for received in loopback.requests)
    loopback.requests.clear()

    together = spread(pytester, *args, "--junitxml=together.xml", *models)

    assert alone.ret == together.ret == pytest.ExitCode.TESTS_FAILED
    assert alone.parseoutcomes() == together.parseoutcomes()
    assert announced(alone) == announced(together)
    assert table(alone) == table(together)
    assert figures(pytester.path / "alone.xml") == figures(pytester.path / "together.xml")
    assert Counter(json.dumps(received.body) for received in loopback.requests) == asked_alone


def test_a_worker_that_dies_loses_its_trial_alone_and_nothing_is_asked_again(
    pytester: pytest.Pytester, write_skill: WriteSkill, loopback: Loopback
) -> None:
    loopback.answer = answer
    write_skill(*CASES)
    pytester.makeconftest(
        """
        import os
        def pytest_runtest_call(item):
            if item.name == "case-2[m-with_skill]":
                os._exit(1)
        """
    )
    models = ("--upskill-models", f"m@{loopback.openai_url}", "--upskill-cache", "off")

    result = spread(pytester, "-n2", *models, "--junitxml=x.xml", "skills")

    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["*worker * crashed while running *::case-2?m-with_skill?*"])
    result.stdout.fnmatch_lines(["billing on m: gate not decided: only 11 of 12 tests ran"])
    figure = properties(cases_of(pytester.path / "x.xml")["gate[m]"])
    # Cases 0, 3 and 4 passed of the five that ran in both arms.
    assert figure["upskill.pass_rate.with"] == "0.6"
    assert len(loopback.requests) == 12


def test_a_failure_stops_workers_that_wait_for_slow_answers(
    pytester: pytest.Pytester, write_skill: WriteSkill, loopback: Loopback
) -> None:
    loopback.answer = lambda received: (
        "wrong" if "(0)" in received.user else Reply(text="late", delay=60)
    )
    write_skill(*CASES)
    models = ("--upskill-models", f"m@{loopback.openai_url}", "--upskill-cache", "off")

    result = spread(pytester, "-n2", "-x", *models, "skills")

    assert result.duration < 30
    assert result.parseoutcomes()["failed"] == 1
    result.stdout.fnmatch_lines(["*stopping after 1 failures*"])


def test_a_file_of_cases_that_another_plugin_collects_is_left_to_it(
    pytester: pytest.Pytester, write_skill: WriteSkill, loopback: Loopback
) -> None:
    loopback.answer = answer
    write_skill(*CASES[:1])
    data = pytester.mkdir("data") / "evals.json"
    data.write_text("[]", "utf-8")
    pytester.makeconftest(
        """
        import pytest
        def pytest_collect_file(file_path, parent):
            if file_path.parent.name == "data":
                return Theirs.from_parent(parent, path=file_path)
        class Theirs(pytest.File):
            def collect(self):
                return [Passing.from_parent(self, name="theirs")]
        class Passing(pytest.Item):
            def runtest(self):
                pass
        """
    )

    result = spread(
        pytester, "-n2", "--upskill-models", f"m@{loopback.openai_url}", "skills", "data"
    )

    assert result.parseoutcomes()["passed"] == 1 + 3


def test_recorded_answers_of_a_trial_are_handed_over_once(
    pytester: pytest.Pytester,
    write_skill: WriteSkill,
    loopback: Loopback,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given: list[str] = []
    write_answers = Handover.write_answers

    def count(handover: Handover, nodeid: str, answers: Sequence[Answer]) -> None:
        given.append(nodeid)
        write_answers(handover, nodeid, answers)

    write_skill(*CASES)
    args = (f"--upskill-models=m@{loopback.openai_url}", "--upskill-runs=20", "skills")
    spread(pytester, "-n0", *args)

    monkeypatch.setattr(Handover, "write_answers", count)
    result = spread(pytester, "-n2", *args)

    assert len(result.parseoutcomes()) == 2
    assert len(given) == len(set(given)) == 12
