"""A statement that no answer can show counts in no arm, and is counted; others are missing data."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_upskill.report.exit_code import NOT_MEASURED
from tests.conftest import QUESTION, Run, WriteSkill
from tests.loopback import Loopback, Received, Reply

KIND = "It is kind."
RAN = "The tests were run."
CUE = "write an agent before the model, as in loop:MODEL"

Serve = Callable[[Callable[[str], bool]], tuple[str, ...]]


def case(name: str, *statements: str, **checks: str) -> dict[str, Any]:
    return {"id": name, "input": f"{QUESTION} {name}", "expected": {**checks, "judge": statements}}


@pytest.fixture
def serve(loopback: Loopback) -> Serve:
    """Serve a judge that cannot decide `RAN` of some answers; return the arguments.

    An answer names its arm and its number in it, from 0.
    """
    asked = {"with": 0, "without": 0}

    def serve(is_undecidable: Callable[[str], bool]) -> tuple[str, ...]:
        def reply(received: Received) -> Reply:
            if received.body["model"] != "judge":
                arm = "with" if "<skill" in received.system else "without"
                asked[arm] += 1
                return Reply(text=f"It is 37 attempts, answer {asked[arm] - 1} {arm} it.")
            answer, _, listed = received.user.partition("Check these statements")
            verdicts = []
            for number, line in enumerate(listed.splitlines()[1:], 1):
                cannot = RAN in line and is_undecidable(answer)
                holds = "cannot be decided" if cannot else True
                quote = "" if cannot else "37 attempts"
                entry = {"statement": number, "quote": quote, "reason": "r", "holds": holds}
                verdicts.append(entry)
            return Reply(text=json.dumps({"verdicts": verdicts}))

        loopback.answer = reply
        url = loopback.openai_url
        return (
            "skills",
            f"--upskill-models=m=model@{url}",
            f"--upskill-judge=judge@{url}",
            "--upskill-json=report.json",
            "--upskill-concurrency=1",
        )

    return serve


def trials(file: str = "report.json") -> list[dict[str, Any]]:
    (entry,) = json.loads(Path(file).read_text("utf-8"))["entries"]
    found: list[dict[str, Any]] = entry["gate"]["cell"]["trials"]
    return found


def outline(trials: list[dict[str, Any]]) -> list[tuple[str, int, list[str]]]:
    return sorted((each["case"], len(each["runs"]), each["undecidable"]) for each in trials)


@pytest.mark.parametrize("options", [(), ("--upskill-runs=6", "--upskill-early-stop")])
def test_a_statement_that_no_answer_shows_leaves_every_arm_and_is_counted_with_the_cure(
    run: Run, write_skill: WriteSkill, serve: Serve, options: tuple[str, ...]
) -> None:
    write_skill(case("a", RAN, KIND), case("b", KIND, RAN))

    result = run(*serve(lambda _: True), *options)

    result.assert_outcomes(passed=5)
    told = "judge: 2 statements are left out of every arm, as an answer cannot show them"
    assert f"{told}: {CUE}" in result.outlines
    for trial in trials():
        assert trial["undecidable"] == [RAN]
        assert trial["statements"] == [KIND]
        assert all(len(answer["checks"]) == 1 for answer in trial["runs"])


def test_what_half_of_the_answers_of_both_arms_cannot_show_leaves_both(
    run_once: Run, write_skill: WriteSkill, serve: Serve
) -> None:
    write_skill(case("a", RAN, KIND))

    result = run_once(*serve(lambda answer: "without it" in answer), "--upskill-runs=2")

    result.assert_outcomes(passed=3)
    assert [trial["undecidable"] for trial in trials()] == [[RAN], [RAN]]


@pytest.mark.parametrize("selected", [(), ("-k", "not without_skill")])
def test_what_fewer_answers_cannot_show_is_missing_data_of_these(
    run_once: Run, write_skill: WriteSkill, serve: Serve, selected: tuple[str, ...]
) -> None:
    write_skill(case("a", RAN, KIND))

    result = run_once(
        *serve(lambda answer: "answer 0 with it" in answer), "--upskill-runs=5", *selected
    )

    first = trials()[0]
    assert result.parseoutcomes().get("failed", 0) == 0
    assert first["undecidable"] == []
    assert len(first["runs"]) == 4
    assert first["errors"] == [f"judge: '{RAN}' cannot be decided: r"]


def test_a_case_without_any_other_check_is_skipped_and_measures_nothing(
    run: Run, write_skill: WriteSkill, serve: Serve
) -> None:
    write_skill(case("a", RAN))

    result = run(*serve(lambda _: True))

    result.assert_outcomes(skipped=2)
    assert result.ret == NOT_MEASURED
    result.stdout.fnmatch_lines(["*its judge cannot decide any of its statements *use an agent*"])


def test_such_a_case_leaves_the_others_a_verdict(
    run_once: Run, write_skill: WriteSkill, serve: Serve
) -> None:
    write_skill(case("a", RAN), case("b", KIND), case("c", KIND, RAN, contains="37"))
    models = serve(lambda _: True)

    result = run_once(*models, "--upskill-runs=2", "--upskill-md=r.md", "--upskill-html=r.html")
    whole = trials()

    result.assert_outcomes(passed=5, skipped=2)
    result.stdout.no_fnmatch_line("*trials ran*")
    assert outline(whole) == [
        ("a", 0, [RAN]),
        ("a", 0, [RAN]),
        ("b", 2, []),
        ("b", 2, []),
        ("c", 2, [RAN]),
        ("c", 2, [RAN]),
    ]


def test_a_baseline_is_not_compared_where_other_statements_counted(
    run_once: Run, write_skill: WriteSkill, serve: Serve
) -> None:
    write_skill(case("a", RAN, KIND), case("b", KIND))
    run_once(*serve(lambda _: False), "--upskill-baseline-update")

    result = run_once(*serve(lambda _: True), "--upskill-cache=off", "--upskill-compare=baseline")

    assert "billing on m: not compared, changed since the baseline: a" in result.outlines
