"""What runs without a usable reply do to verdict, gate and exit code."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pytest_upskill.report.exit_code import NOT_MEASURED
from tests import junit
from tests.conftest import Run
from tests.reporting import cell, trial
from tests.reporting import run as run_of
from tests.scripted_model import Script


def test_missing_runs_that_could_decide_give_no_verdict_no_decision_and_exit_code_75(
    script: Script, run_once: Run
) -> None:
    args = script(one="++-!! -----", two="++-!! -----")

    result = run_once(*args, "--junitxml=junit.xml", "-rs", "--upskill-min-pass-rate=0")

    assert result.ret == NOT_MEASURED
    why = "missing data: 4 missing runs could change the verdict 'helps'"
    result.stdout.fnmatch_lines(["  haiku * missing data *"])
    result.stdout.fnmatch_lines(
        [f"SKIPPED * skills/csv/skill_meta.json:1: gate not decided: {why}"]
    )
    result.stdout.fnmatch_lines([f"exit code 75: csv on haiku: gate not decided: {why}"])
    gate = junit.cases_of(Path("junit.xml"))["gate[haiku]"]
    assert junit.properties(gate)["upskill.verdict"] == "missing data"


def test_few_missing_runs_leave_the_verdict_and_are_shown(script: Script, run_once: Run) -> None:
    args = script(one="+++++++++! ----------", two="++++++++++ ----------")

    result = run_once(*args, "--upskill-min-pass-rate=1")

    assert result.ret == NOT_MEASURED
    result.assert_outcomes(passed=4, errors=1)
    result.stdout.fnmatch_lines(
        [
            "  haiku * +100 * helps *",
            "csv on haiku: 1 run is missing; the decision would be the same*",
        ]
    )


def test_a_failed_case_is_red_whatever_else_is_missing(script: Script, run_once: Run) -> None:
    args = script(one="+++++ -----", two="++-!- -----", three="--+-+ -----")

    result = run_once(*args)

    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.assert_outcomes(passed=5, failed=1, errors=1)


def test_a_case_that_no_missing_run_could_save_has_failed(script: Script, run_once: Run) -> None:
    args = script(one="+---! -----", two="+++++ -----")

    result = run_once(*args)

    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.assert_outcomes(passed=4, failed=1)
    result.stdout.fnmatch_lines(
        ["1 of 4 runs passed (1 missing); more than half must *: contains 'right'*"]
    )


def test_a_failed_gate_is_red_whatever_is_missing(script: Script, run_once: Run) -> None:
    args = script(one="----- +++++", two="----- +++++", three="----! +++++")

    result = run_once(*args, "--upskill-min-pass-rate=0")

    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.assert_outcomes(passed=6, failed=1)


def test_the_only_run_that_is_not_missing_is_counted_in_the_failure(
    script: Script, run_once: Run
) -> None:
    result = run_once(*script(one="-! --"))

    result.stdout.fnmatch_lines(["0 of 1 runs passed (1 missing)*"])


def test_after_interim_looks_missing_runs_are_weighed_at_the_level_of_the_last_one() -> None:
    # At 4 % a failure in place of the missing run would leave the verdict, at 3.4 % it would not.
    runs = {"one": ([True] * 4 + [False] * 2, 1), "two": ([False] * 7, 0)}
    trials = [
        replace(each, planned=7, early_stop=True)
        for case, (passed, missing) in runs.items()
        for each in (
            trial(case, "with_skill", list(map(run_of, passed)), errors=("503",) * missing),
            trial(case, "without_skill", [run_of(False)] * 7),
        )
    ]

    assert cell(*trials).lift.verdict == "missing data"
    assert cell(*(replace(each, early_stop=False) for each in trials)).lift.verdict == "helps"
