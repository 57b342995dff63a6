"""A trial passes if enough of its runs do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests import reporting
from tests.conftest import QUESTION, Run, WriteSkill
from tests.loopback import Loopback, Received

Passing = Callable[[int], tuple[str, ...]]

CASE: dict[str, Any] = {"id": "budget", "input": QUESTION, "expected": {"contains": "37"}}


@pytest.fixture
def passing(loopback: Loopback) -> Passing:
    """Make a model that is right only so many times in each arm; return its options."""

    def passing(times: int) -> tuple[str, ...]:
        left = {True: times, False: times}

        def answer(received: Received) -> str:
            arm = "<skill" in received.system
            left[arm] -= 1
            return f"{37 if left[arm] >= 0 else 38} {len(loopback.requests)}"

        loopback.answer = answer
        return "--upskill-models", f"m@{loopback.openai_url}", "--upskill-concurrency", "1"

    return passing


@pytest.mark.parametrize(
    ("rate", "passes", "passed"),
    [
        (0.66, 2, True),
        (0.67, 2, False),
        (1, 3, True),
        (1, 2, False),
        (1 / 3, 1, True),
        (0.34, 1, False),
        (0, 0, True),
        (0.01, 0, False),
    ],
)
def test_a_trial_passes_when_enough_of_its_runs_do(rate: float, passes: int, passed: bool) -> None:
    runs = [reporting.run(number < passes) for number in range(3)]

    trial = replace(reporting.trial("budget", "with_skill", runs), min_pass_rate=rate)

    assert trial.passed is passed


@pytest.mark.parametrize(
    ("passes", "runs", "passed"),
    [(1, 1, True), (0, 1, False), (1, 2, False), (2, 3, True), (2, 4, False), (3, 5, True)],
)
def test_without_a_pass_rate_more_than_half_of_the_runs_must_pass(
    run_once: Run, write_skill: WriteSkill, passing: Passing, passes: int, runs: int, passed: bool
) -> None:
    write_skill(CASE)

    result = run_once(*passing(passes), f"--upskill-runs={runs}", "skills")

    assert result.ret == (pytest.ExitCode.OK if passed else pytest.ExitCode.TESTS_FAILED)


def test_a_missing_run_that_could_make_a_majority_leaves_a_trial_open() -> None:
    missing = ("503",)
    runs = [reporting.run(passed) for passed in (True, True, False)]

    open_ = reporting.trial("budget", "with_skill", runs, errors=missing)

    assert not open_.settled
    assert replace(open_, errors=()).settled
    assert reporting.trial("budget", "with_skill", runs[:2], errors=missing).settled


def test_the_pass_rate_of_a_case_precedes_that_of_its_file(
    run_once: Run, write_skill: WriteSkill, passing: Passing
) -> None:
    write_skill(CASE | {"min_pass_rate": 0.5}, defaults={"min_pass_rate": 1})

    result = run_once(*passing(1), "--upskill-runs", "2", "skills")

    result.assert_outcomes(passed=3)


@pytest.mark.parametrize(("of_file", "failed"), [({}, 0), ({"min_pass_rate": 1}, 1)])
def test_the_pass_rate_of_a_file_precedes_that_of_the_option(
    run_once: Run, write_skill: WriteSkill, passing: Passing, of_file: object, failed: int
) -> None:
    write_skill(CASE, defaults=of_file)
    options = ("--upskill-runs", "2", "--upskill-min-pass-rate", "0.5")

    result = run_once(*passing(1), *options, "skills")

    result.assert_outcomes(passed=3 - failed, failed=failed)


def test_a_failure_says_which_runs_missed_and_shows_their_answers(
    run_once: Run, write_skill: WriteSkill, passing: Passing
) -> None:
    write_skill(CASE)

    result = run_once(*passing(2), "--upskill-runs", "4", "skills")

    result.stdout.re_match_lines(
        [
            (
                r"2 of 4 runs passed; more than half must \(--upskill-min-pass-rate .*\): "
                r"contains '37': not in the answer \(.*"
            ),
            r"runs? \d.*:",
            r"  0 of 1 checks passed",
            r"-+ answer -+",
            r"\| 38 \d",
            r"-+ answer -+",
            r"\| 38 \d",
        ]
    )


def test_a_failure_names_the_pass_rate_that_was_set(
    run_once: Run, write_skill: WriteSkill, passing: Passing
) -> None:
    write_skill(CASE)

    result = run_once(*passing(3), "--upskill-runs=4", "--upskill-min-pass-rate=1", "skills")

    result.stdout.fnmatch_lines(["3 of 4 runs passed; all 4 must (min_pass_rate 1): contains*"])
    assert result.stdout.str().count("contains '37': not in") == 1  # also a reason is said once


def test_the_runs_that_missed_count_in_the_pass_rates(
    run_once: Run, write_skill: WriteSkill, passing: Passing
) -> None:
    write_skill(CASE | {"min_pass_rate": 0.5})

    result = run_once(*passing(2), "--upskill-runs", "4", "-v", "skills")

    result.assert_outcomes(passed=3)
    result.stdout.fnmatch_lines(["  m* 50->50% *", "    budget* 2/4->2/4 *"])
