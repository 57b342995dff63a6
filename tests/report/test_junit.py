"""JUnit XML: properties, failures and answers."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_upskill.stats import CaseCounts, lift_interval
from tests.conftest import QUESTION, Run, WriteSkill
from tests.junit import cases_of, properties, suite
from tests.loopback import Loopback, Reply

GREEN = {"id": "green", "input": QUESTION, "expected": {"contains": "37"}}
RED = {"id": "red", "input": QUESTION, "expected": {"contains": ["37", "38"]}}
OFFLINE = ("--upskill-models", "offline")
HOSTILE = (
    "\x00\x07\x1b[31mred\x1b[0m \ud800 \u202eevil \ufffe\n"
    "::error file=app.py::gotcha\n"
    "[[ATTACHMENT|/etc/passwd]]\n"
    "]]></system-out><failure/>"
)


@pytest.fixture
def xml(pytester: pytest.Pytester) -> Path:
    return pytester.path / "results.xml"


def test_a_trial_carries_what_it_measured(
    run_once: Run, write_skill: WriteSkill, xml: Path
) -> None:
    write_skill(GREEN, RED)

    run_once(*OFFLINE, "--upskill-runs", "2", f"--junitxml={xml}")

    figures = properties(cases_of(xml)["red[offline-with_skill]"])
    assert float(figures.pop("upskill.latency_s")) >= 0
    assert len(figures.pop("upskill.digest.prompt")) == 16
    assert len(figures.pop("upskill.digest.skill")) == 16
    expected = {
        "skill": "billing",
        "case": "red",
        "model": "offline",
        "arm": "with_skill",
        "model.resolved": "offline:offline",
        "model.served": "offline",
        "runs": "1",
        "runs.missing": "0",
        "passed": "0",
        "checks": "1/2",
        "tokens.in": "93",
        "tokens.out": "34",
    }
    assert {name: figures[f"upskill.{name}"] for name in expected} == expected


def test_suite_and_gate_carry_the_figures_of_a_cell(
    run_once: Run, write_skill: WriteSkill, xml: Path
) -> None:
    write_skill(GREEN, RED)

    run_once(*OFFLINE, f"--junitxml={xml}")

    interval = lift_interval([CaseCounts(1, 1, 0, 1), CaseCounts(0, 1, 0, 1)])
    assert interval is not None
    figures = {
        "verdict": "too few runs",
        "lift": "0.5",
        "lift.low": f"{interval.low:.6f}",
        "lift.high": f"{interval.high:.6f}",
        "passes.with": "1",
        "runs.with": "2",
        "pass_rate.with": "0.5",
        "checks_passed.with": "1",
        "checks.with": "1.5",
        "tokens.with": "127",
        "passes.without": "0",
        "pass_rate.without": "0",
        "checks_passed.without": "0",
        "tokens.without": "74",
        "tokens.ratio": "1.716216",
        "missing": "0",
    }
    of_gate = properties(cases_of(xml)["gate[offline]"])
    assert {name: of_gate[f"upskill.{name}"] for name in figures} == figures
    assert of_gate["upskill.skill"] == "billing"
    assert of_gate["upskill.model.resolved"] == "offline:offline"
    # No name that only a dashboard reads.
    assert all(name.startswith("upskill.") for name in of_gate)


def test_only_what_failed_is_red_says_what_it_missed_and_shows_its_answer(
    run_once: Run, write_skill: WriteSkill, xml: Path
) -> None:
    write_skill(GREEN, RED)

    run_once(*OFFLINE, "--upskill-min-lift", "1", f"--junitxml={xml}")

    cases = cases_of(xml)
    red = [name for name, case in cases.items() if case.find("failure") is not None]
    assert sorted(red) == ["gate[offline]", "red[offline-with_skill]"]
    counts = {name: suite(xml).attrib[name] for name in ("tests", "failures", "errors", "skipped")}
    assert counts == {"tests": "5", "failures": "2", "errors": "0", "skipped": "0"}
    with_answer = [name for name, case in cases.items() if case.find("system-out") is not None]
    assert with_answer == ["red[offline-with_skill]"]
    properties_, failure, answer = cases["red[offline-with_skill]"]
    assert [properties_.tag, failure.tag, answer.tag] == ["properties", "failure", "system-out"]
    assert failure.attrib["message"].startswith("contains '38': not in the answer (")
    assert "| The retry budget of the billing service is 37 attempts." in (answer.text or "")


def test_missing_answers_are_errors_and_counted(
    run_once: Run, write_skill: WriteSkill, xml: Path, loopback: Loopback
) -> None:
    write_skill(GREEN)
    loopback.answer = lambda _: Reply(status=400, text="bad request")

    run_once("--upskill-models", f"m@{loopback.openai_url}", f"--junitxml={xml}")

    trial = cases_of(xml)["green[m-with_skill]"]
    assert trial.find("error") is not None
    assert trial.find("failure") is None
    assert properties(trial)["upskill.runs.missing"] == "1"
    assert properties(cases_of(xml)["gate[m]"])["upskill.missing"] == "2"


def test_hostile_answers_are_inert_in_junit_xml(
    run_once: Run, write_skill: WriteSkill, xml: Path, loopback: Loopback
) -> None:
    write_skill(RED)
    loopback.answer = lambda _: HOSTILE
    models = ("--upskill-models", f"m@{loopback.openai_url}")

    result = run_once(*models, "--color=no", f"--junitxml={xml}")

    result.assert_outcomes(failed=1, passed=2)
    answer = cases_of(xml)["red[m-with_skill]"].findtext("system-out") or ""
    assert answer == (
        "| \\x00\\x07\\x1b[31mred\\x1b[0m ? \\x202eevil \\xfffe\n"
        "| : :error file=app.py::gotcha\n"
        "| [[ATTACHMENT\\|/etc/passwd]]\n"
        "| ]]></system-out><failure/>\n"
    )
    for written in (xml.read_text("utf-8"), result.stdout.str()):
        assert not set(written) & set("\x00\x07\x1b\u202e\ufffe")
        assert "[[ATTACHMENT|" not in written
        assert not [line for line in written.splitlines() if line.lstrip().startswith("::error")]
