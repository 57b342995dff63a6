"""A run that measures nothing is not green, and says why in one line."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_upskill.figures.gate import NOT_MEASURED
from pytest_upskill.trials.result import NO_JUDGE, skip_reasons
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
        "exit code 75: nothing was measured: 3 cases only have statements for a judge; add "
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
    result.stdout.fnmatch_lines(["nothing was measured: 1 case only has *"])


@pytest.mark.usefixtures("judge_only")
@pytest.mark.parametrize(
    "option", ["--co", "--setup-only", "--upskill-dry-run", "--upskill-shard=1/2"]
)
def test_a_run_that_is_not_to_measure_everything_is_green(run_once: Run, option: str) -> None:
    result = run_once(*OFFLINE, option)

    assert result.ret == pytest.ExitCode.OK
    result.stdout.no_fnmatch_line("nothing was measured*")


def test_one_skill_that_was_skipped_among_others_is_named_with_its_reasons(
    run_once: Run, write_skill: WriteSkill
) -> None:
    write_skill()
    write_skill(spoken("a"), spoken("b") | {"validator": "v"}, name="shipping")

    result = run_once(*OFFLINE)

    assert result.ret == pytest.ExitCode.OK
    line = (
        "shipping on offline: not measured, as every case was skipped: 1 case only has statements "
        "for a judge; add --upskill-judge MODEL; 1 case: validator: *"
    )
    result.stdout.fnmatch_lines([line])


def test_reasons_that_differ_in_a_name_are_counted_together_and_the_rarest_left_out() -> None:
    reasons = ["no gcc", NO_JUDGE, "no 'a.csv'", "no 'b.csv'", "no 'b.csv'", "no nvcc", "no cl"]

    line = skip_reasons(reasons)

    assert line == (
        "3 cases: no 'a.csv' and the like; 1 case: no gcc; "
        "1 case only has statements for a judge; add --upskill-judge MODEL; "
        "2 cases for other reasons; -rs lists them"
    )
