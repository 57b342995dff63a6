"""Rules of verdicts, tests and figures at their limits."""

from __future__ import annotations

import pytest

from pytest_upskill.stats import (
    CaseCounts,
    early_alpha,
    early_verdict,
    lift,
    lift_interval,
    lift_test,
    regression_test,
    runs_needed,
    significant,
    verdict,
)


@pytest.mark.parametrize(
    ("row", "figure"),
    [
        ([6, 5, 0, 5], "6 passes of 5 runs with the skill"),
        ([0, 5, -1, 5], "-1 passes of 5 runs without the skill"),
        ([1.0, 5, 0, 5], "1.0 passes of 5 runs with the skill"),
    ],
)
def test_impossible_counts_are_refused_in_one_line(row: list[int], figure: str) -> None:
    with pytest.raises(ValueError, match=figure) as caught:
        CaseCounts(*row)

    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize("cases", [[], [CaseCounts(1, 1, 0, 0)]], ids=["empty", "one arm only"])
def test_figures_without_data_are_none_and_tests_find_nothing(cases: list[CaseCounts]) -> None:
    figures = [lift(cases), lift_interval(cases), runs_needed(cases)]

    assert figures == [None] * 3
    assert (lift_test(cases), regression_test(cases)) == (1.0, 1.0)
    assert verdict(cases) == "too few runs"


def test_fewer_than_five_runs_of_an_arm_give_no_verdict_however_clear() -> None:
    assert verdict([CaseCounts(4, 4, 0, 50)]) == "too few runs"
    assert verdict([CaseCounts(5, 5, 0, 50)]) == "helps"


def test_p_equal_to_alpha_is_significant() -> None:
    one_in_twenty = [CaseCounts(3, 3, 0, 3)]

    assert significant(lift_test(one_in_twenty))
    assert not significant(0.0500001)


def test_no_number_of_runs_shows_a_lift_of_zero_or_one_the_test_sees_reversed() -> None:
    balanced = [CaseCounts(3, 5, 2, 5), CaseCounts(2, 5, 3, 5)]
    reversed_by_unequal_runs = [CaseCounts(1, 1, 0, 1), CaseCounts(1, 40, 10, 40)]

    assert runs_needed(balanced) is None
    assert runs_needed(reversed_by_unequal_runs) is None


def test_an_early_look_waits_for_whole_rounds() -> None:
    clear = [CaseCounts(2, 2, 0, 2)] * 5

    assert early_verdict(clear, done=2, planned=5) == "helps"
    assert early_verdict(clear, done=3, planned=5) is None
    assert early_verdict(clear, done=2, planned=2) is None


def test_from_half_way_a_cell_whose_verdict_will_hardly_become_clear_stops() -> None:
    level = [CaseCounts(1, 2, 1, 2)] * 10

    assert early_verdict(level, done=2, planned=5) is None
    level = [CaseCounts(2, 3, 2, 3), CaseCounts(1, 3, 1, 3)] * 5
    assert early_verdict(level, done=3, planned=5) == "futile"
    assert early_verdict(level, done=3, planned=20) is None


def test_a_single_round_is_one_look() -> None:
    assert early_alpha(1, 1) == 0.05


def test_it_is_futile_to_go_on_from_half_of_the_rounds_on() -> None:
    alike = [CaseCounts(2, 5, 2, 5)] * 8

    assert early_verdict(alike, 5, 10) == "futile"
    assert early_verdict(alike, 5, 11) is None
