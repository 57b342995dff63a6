"""Hold-out, acceptance and ledger: the rules by which a new version is accepted."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_upskill.cases.skill import Case
from pytest_upskill.stats import CaseCounts
from pytest_upskill.teacher.holdout import (
    Comparison,
    Ledger,
    Look,
    RecordedLook,
    alpha_of_look,
    decide_acceptance,
    is_held_out,
    look_number_of,
    next_look_number,
    power,
    split_cases,
)

BETTER = [CaseCounts(10, 10, 3, 10)] * 8
EQUAL = [CaseCounts(5, 10, 5, 10)] * 8
WORSE = [CaseCounts(3, 10, 7, 10)] * 8
COMPARISON = Comparison(old="a", new="b", students=("s",), cases=("1", "2"), runs=10)


def cases(names: set[str]) -> list[Case]:
    return [Case(id=name, input=name, checks=()) for name in sorted(names)]


@given(st.sets(st.text(min_size=1)), st.sets(st.text(min_size=1), max_size=5))
def test_further_cases_never_move_a_case_between_train_and_hold_out(
    before: set[str], more: set[str]
) -> None:
    train, holdout = split_cases(cases(before))
    new_train, new_holdout = split_cases(cases(before | more))

    assert {case.id for case in train} <= {case.id for case in new_train}
    assert {case.id for case in holdout} <= {case.id for case in new_holdout}


def test_two_fifths_of_the_cases_are_held_out() -> None:
    assert sum(is_held_out(f"case-{number}") for number in range(10_000)) == pytest.approx(
        4000, abs=100
    )


def test_the_levels_of_all_looks_sum_to_alpha() -> None:
    assert alpha_of_look(1) == 0.025
    assert sum(map(alpha_of_look, range(1, 10_000))) == pytest.approx(0.05, abs=1e-5)


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
    found = [power(gain, cases=8, runs=10, look=1) for gain in (0.1, 0.2, 0.3)]

    assert found == pytest.approx([0.47, 0.95, 1.0], abs=0.05)


def look(number: int, comparison: Comparison = COMPARISON) -> Look:
    return Look(skill="csv", look=number, date="2026-11-22T12:00:00+00:00", comparison=comparison)


def test_a_look_is_numbered_after_all_that_ledger_and_recordings_know() -> None:
    other = Comparison(old="a", new="c", students=("s",), cases=("1", "2"), runs=10)
    recorded = [RecordedLook(look=3, skills=frozenset({"a", "d"}), students=frozenset({"s"}))]

    assert next_look_number([], []) == 1
    assert next_look_number([look(1, other)], []) == 2
    assert next_look_number([look(1, other)], recorded) == 4
    # On two branches, which were merged.
    assert next_look_number([look(1, other)] * 2, []) == 3


def test_the_same_comparison_is_the_same_look_again() -> None:
    recorded = [RecordedLook(look=3, skills=frozenset({"a", "b"}), students=frozenset({"s"}))]

    assert look_number_of(COMPARISON, [], recorded) == 3


def test_another_student_makes_another_look_of_what_only_recordings_know() -> None:
    recorded = [RecordedLook(look=1, skills=frozenset({"a", "b"}), students=frozenset({"t"}))]

    assert look_number_of(COMPARISON, [], recorded) == 2


def test_a_look_at_some_of_the_cases_counts_for_a_hold_out_that_has_grown(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    ledger.write(look(1))

    assert ledger.looks(["2", "3"]) == [look(1)]
    assert ledger.looks(["3"]) == []
