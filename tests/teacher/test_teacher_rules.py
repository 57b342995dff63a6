"""Hold-out and acceptance: the rules by which a new version is accepted."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_upskill.cases.skill import Case
from pytest_upskill.stats import CaseCounts, look_alpha
from pytest_upskill.teacher.acceptance import (
    ALPHA,
    decide_acceptance,
    is_held_out,
    power,
    split_cases,
)

BETTER = [CaseCounts(10, 10, 3, 10)] * 8
EQUAL = [CaseCounts(5, 10, 5, 10)] * 8
WORSE = [CaseCounts(3, 10, 7, 10)] * 8


def cases(questions: set[str]) -> list[Case]:
    return [Case(id="", input=question, checks=()) for question in sorted(questions)]


@given(st.sets(st.text(min_size=1)), st.sets(st.text(min_size=1), max_size=5))
def test_further_cases_never_move_a_case_between_train_and_hold_out(
    before: set[str], more: set[str]
) -> None:
    train, holdout = split_cases(cases(before))
    new_train, new_holdout = split_cases(cases(before | more))

    assert {case.input for case in train} <= {case.input for case in new_train}
    assert {case.input for case in holdout} <= {case.input for case in new_holdout}


def test_two_fifths_of_the_cases_are_held_out() -> None:
    some = cases({f"Question {number}?" for number in range(10_000)})

    assert sum(map(is_held_out, some)) == pytest.approx(4000, abs=100)


def test_the_levels_of_all_looks_sum_to_alpha() -> None:
    assert look_alpha(1, ALPHA) == 0.025
    assert sum(look_alpha(look, ALPHA) for look in range(1, 10_000)) == pytest.approx(
        0.05, abs=1e-5
    )


def test_one_student_that_gains_is_enough_unless_another_loses() -> None:
    assert decide_acceptance({"a": BETTER, "b": EQUAL}, look=1).accepted
    assert decide_acceptance({"a": BETTER, "b": WORSE}, look=1).worse == ("b",)
    assert not decide_acceptance({"a": BETTER, "b": WORSE}, look=1).accepted
    assert not decide_acceptance({"a": EQUAL, "b": EQUAL}, look=1).accepted


def test_p_is_adjusted_for_the_number_of_students() -> None:
    alone = decide_acceptance({"a": BETTER}, look=1).p

    assert decide_acceptance({"a": BETTER, "b": EQUAL, "c": EQUAL}, look=1).p == pytest.approx(
        3 * alone
    )


def test_nothing_is_better_than_a_version_that_always_passes() -> None:
    acceptance = decide_acceptance({"a": [CaseCounts(10, 10, 10, 10)] * 8}, look=1)

    assert acceptance.p == 0.5
    assert not acceptance.accepted


def test_power_of_the_first_look_is_that_of_the_published_table() -> None:
    # 47, 95 and 100 %, from an independent simulation.
    found = [power(gain, cases=8, runs=10, look=1, spread=0.5) for gain in (0.1, 0.2, 0.3)]

    assert found == pytest.approx([0.47, 0.95, 1.0], abs=0.05)
