"""A run that measures nothing is not green, and says why in one line."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_upskill.report.exit_code import NOT_MEASURED
from pytest_upskill.trials.needs import NO_JUDGE, skip_lines
from tests.conftest import QUESTION, Run, WriteSkill

OFFLINE = ("--upskill-models", "offline", "skills")


def spoken(name: str) -> dict[str, Any]:
    return {"id": name, "input": QUESTION, "expected": {"judge": "It is kind."}}


@pytest.fixture
def judge_only(write_skill: WriteSkill) -> None:
    write_skill(spoken("a"), spoken("b"))
    write_skill(spoken("a"), name="shipping")


@pytest.mark.usefixtures("judge_only")
@pytest.mark.parametrize("quiet", [(), ("-q",), ("-qq",)], ids=["", "-q", "-qq"])
def test_a_run_of_which_every_trial_is_skipped_is_not_green(
    run: Run, quiet: tuple[str, ...]
) -> None:
    result = run(*OFFLINE, *quiet)

    assert result.ret == NOT_MEASURED
    line = (
        "exit code 75: nothing was measured: 3 cases have only statements for a judge: add "
        "--upskill-judge MODEL"
    )
    assert line in result.outlines


@pytest.mark.usefixtures("judge_only")
@pytest.mark.parametrize("option", ["--upskill-min-lift=0.2", "--upskill-fail-on=too-few-runs"])
def test_a_threshold_does_not_make_a_run_without_trials_green(run_once: Run, option: str) -> None:
    assert run_once(*OFFLINE, option).ret == NOT_MEASURED


def test_a_test_that_failed_keeps_the_run_red(
    run_once: Run, write_skill: WriteSkill, pytester: pytest.Pytester
) -> None:
    write_skill(spoken("a"))
    pytester.makepyfile("def test_it(): assert False")

    result = run_once(*OFFLINE, ".")

    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["nothing was measured: 1 case has only *"])


@pytest.mark.usefixtures("judge_only")
@pytest.mark.parametrize("option", ["--co", "--setup-only", "--upskill-dry-run"])
def test_a_run_that_is_not_to_measure_everything_is_green(run_once: Run, option: str) -> None:
    result = run_once(*OFFLINE, option)

    assert result.ret == pytest.ExitCode.OK
    result.stdout.no_fnmatch_line("nothing was measured*")


def test_each_reason_for_skipping_is_one_line_at_the_end_with_a_count(
    run_once: Run, write_skill: WriteSkill
) -> None:
    write_skill()
    for name in ("shipping", "storage"):
        write_skill(spoken("a"), spoken("b") | {"validator": "v"}, name=name)

    result = run_once(*OFFLINE)

    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(
        [
            "skipped: 2 cases have only statements for a judge: add --upskill-judge MODEL",
            "skipped: 2 cases: validator: *",
        ]
    )


@pytest.mark.parametrize("option", ["", "--upskill-dry-run", "--collect-only"])
def test_what_the_cases_need_is_said_before_anything_is_paid_for(
    run: Run, write_skill: WriteSkill, option: str
) -> None:
    write_skill(
        {"id": "text", "input": QUESTION, "expected": {"contains": "37"}},
        spoken("a"),
        {"id": "file", "input": QUESTION, "expected": {"file_exists": "a.txt"}},
        {"id": "turns", "input": QUESTION, "expected": {"contains": "37"}, "max_turns": 3},
        {"id": "query", "input": QUESTION, "should_trigger": True},
    )
    write_skill(spoken("a"), spoken("b"), name="shipping")

    result = run(*OFFLINE, *filter(None, [option]))

    lines = [line for line in result.outlines if line.startswith("upskill: ")]
    at = lines.index("upskill: 7 cases: 1 by code, 3 by a judge, 1 by trigger, 2 by an agent")
    cure = "write an agent before the model, as in loop:MODEL"
    assert lines[at + 1 : at + 3] == [
        "upskill: 3 of 7 cases have only statements for a judge: add --upskill-judge MODEL",
        f"upskill: 2 of 7 cases have files or need commands: {cure}",
    ]


def test_a_case_that_one_of_the_models_can_measure_needs_nothing(
    run_once: Run, write_skill: WriteSkill
) -> None:
    write_skill(spoken("a"), {"id": "file", "input": QUESTION, "expected": {"file_exists": "a"}})
    models = "offline,loop:m@http://127.0.0.1:9/v1"

    result = run_once("--upskill-models", models, "--upskill-judge=m@http://127.0.0.1:9", "--co")

    result.stdout.fnmatch_lines(["upskill: 2 cases: 1 by a judge, 1 by an agent"])
    result.stdout.no_fnmatch_line("upskill: * of 2 cases *")


def test_reasons_that_differ_in_a_name_are_counted_together_and_the_rarest_left_out() -> None:
    reasons = ["no gcc", NO_JUDGE, "no 'a.csv'", "no 'b.csv'", "no 'b.csv'", "no nvcc", "no cl"]

    assert skip_lines([*reasons, "no ld"]) == [
        "3 cases: no 'a.csv' and the like",
        "1 case: no gcc",
        "1 case has only statements for a judge: add --upskill-judge MODEL",
        "1 case: no nvcc",
        "1 case: no cl",
        "1 case for other reasons; -rs lists them",
    ]
