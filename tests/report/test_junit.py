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
BOTH_FAMILIES = pytest.mark.parametrize("family", ["xunit1", "xunit2"])
HOSTILE = (
    "\x00\x07\x1b[31mred\x1b[0m \ud800 \u202eevil \ufffe\n"
    "::error file=app.py::gotcha\n"
    "[[ATTACHMENT|/etc/passwd]]\n"
    "]]></system-out><failure/>"
)


@pytest.fixture
def xml(pytester: pytest.Pytester) -> Path:
    return pytester.path / "results.xml"


@BOTH_FAMILIES
def test_a_trial_carries_what_it_measured(
    run_once: Run, write_skill: WriteSkill, xml: Path, family: str
) -> None:
    write_skill(GREEN, RED)

    run_once(*OFFLINE, "--upskill-runs", "2", f"--junitxml={xml}", "-o", f"junit_family={family}")

    figures = properties(cases_of(xml)["red[offline-with_skill]"])
    assert float(figures.pop("upskill.latency_s")) >= 0
    assert len(figures.pop("upskill.digest.prompt")) == 16
    assert len(figures.pop("upskill.digest.skill")) == 16
    assert (
        figures.items()
        >= {
            "upskill.skill": "billing",
            "upskill.case": "red",
            "upskill.model": "offline",
            "upskill.arm": "with_skill",
            "upskill.model.resolved": "offline:offline",
            "upskill.model.served": "offline",
            "upskill.runs": "2",
            "upskill.runs.missing": "0",
            "upskill.passed": "0",
            "upskill.checks": "1/2",
            "upskill.tokens.in": "93",
            "upskill.tokens.out": "34",
        }.items()
    )


def test_suite_and_gate_carry_the_figures_of_a_cell(
    run: Run, write_skill: WriteSkill, xml: Path
) -> None:
    write_skill(GREEN, RED)

    run(*OFFLINE, f"--junitxml={xml}")

    interval = lift_interval([CaseCounts(1, 1, 0, 1), CaseCounts(0, 1, 0, 1)])
    assert interval is not None
    figures = {
        "verdict": "too few runs",
        "lift": "0.5000",
        "lift.low": f"{interval.low:.4f}",
        "lift.high": f"{interval.high:.4f}",
        "pass.with": "1/2",
        "pass_rate.with": "0.5000",
        "checks.with": "1.00/1.50",
        "tokens.with": "127.0",
        "pass.without": "0/2",
        "pass_rate.without": "0.0000",
        "checks.without": "0.00/1.50",
        "tokens.without": "59.0",
        "tokens.ratio": "2.1525",
        "missing": "0",
    }
    of_suite = properties(suite(xml))
    of_gate = properties(cases_of(xml)["gate[offline]"])
    assert {name: of_suite[f"upskill.{name}[billing-offline]"] for name in figures} == figures
    assert {name: of_gate[f"upskill.{name}"] for name in figures} == figures
    assert of_gate["upskill.skill"] == "billing"
    assert of_gate["upskill.model.resolved"] == "offline:offline"


def test_only_what_failed_is_red(run_once: Run, write_skill: WriteSkill, xml: Path) -> None:
    write_skill(GREEN, RED)

    run_once(*OFFLINE, "--upskill-min-lift", "1", f"--junitxml={xml}")

    red = [name for name, case in cases_of(xml).items() if case.find("failure") is not None]
    assert sorted(red) == ["gate[offline]", "red[offline-with_skill]"]
    counts = {name: suite(xml).attrib[name] for name in ("tests", "failures", "errors", "skipped")}
    assert counts == {"tests": "5", "failures": "2", "errors": "0", "skipped": "0"}


def test_the_answer_follows_a_failure_and_nothing_else(
    run_once: Run, write_skill: WriteSkill, xml: Path
) -> None:
    write_skill(GREEN, RED)

    run_once(*OFFLINE, f"--junitxml={xml}")

    cases = cases_of(xml)
    with_answer = [name for name, case in cases.items() if case.find("system-out") is not None]
    assert with_answer == ["red[offline-with_skill]"]
    red = cases["red[offline-with_skill]"]
    assert [element.tag for element in red] == ["properties", "failure", "system-out"]
    assert "| The retry budget of the billing service is 37 attempts." in (
        red.findtext("system-out") or ""
    )


def test_a_failure_says_in_its_first_line_what_was_missed(
    run_once: Run, write_skill: WriteSkill, xml: Path
) -> None:
    write_skill(RED)

    run_once(*OFFLINE, f"--junitxml={xml}")

    failure = cases_of(xml)["red[offline-with_skill]"].find("failure")
    assert failure is not None
    assert failure.attrib["message"].startswith("contains '38': not in the answer (")


def test_missing_answers_are_errors_and_counted(
    run: Run, write_skill: WriteSkill, xml: Path, loopback: Loopback
) -> None:
    write_skill(GREEN)
    loopback.answer = lambda _: Reply(status=400, text="bad request")

    run("--upskill-models", f"m@{loopback.openai_url}", f"--junitxml={xml}")

    trial = cases_of(xml)["green[m-with_skill]"]
    assert trial.find("error") is not None
    assert trial.find("failure") is None
    assert properties(trial)["upskill.runs.missing"] == "1"
    assert properties(suite(xml))["upskill.missing[billing-m]"] == "2"


def test_hostile_answers_are_inert_in_junit_xml(
    run: Run, write_skill: WriteSkill, xml: Path, loopback: Loopback
) -> None:
    write_skill(RED)
    loopback.answer = lambda _: HOSTILE
    models = ("--upskill-models", f"m@{loopback.openai_url}")

    result = run(*models, "--color=no", f"--junitxml={xml}")

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
