"""Properties that the statistics have for any counts."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from pytest_upskill.stats import (
    CaseCounts,
    early_verdict,
    holm,
    lift,
    lift_interval,
    lift_test,
    regression_test,
    runs_needed,
    significant,
    verdict,
)
from pytest_upskill.stats.intervals import score_variance, two_sided_z
from tests.stats.counting import case_counts

quick = settings(deadline=None, max_examples=60)


@st.composite
def planned_suites(draw: st.DrawFn, *, equal_arms: bool = False) -> list[CaseCounts]:
    runs_with = draw(st.integers(1, 10))
    runs_without = runs_with if equal_arms else draw(st.integers(1, 10))
    passes = st.tuples(st.integers(0, runs_with), st.integers(0, runs_without))
    return [
        CaseCounts(with_, runs_with, without, runs_without)
        for with_, without in draw(st.lists(passes, min_size=1, max_size=12))
    ]


any_suite = st.lists(case_counts(), max_size=12)
usable_suite = st.lists(case_counts(min_runs=1), min_size=1, max_size=12)
ps = st.lists(st.floats(0, 1), max_size=10)
SWAPPED = {
    "helps": "hurts",
    "hurts": "helps",
    "no effect": "no effect",
    "too few runs": "too few runs",
}


def swapped(case: CaseCounts) -> CaseCounts:
    return CaseCounts(case.passes_without, case.runs_without, case.passes_with, case.runs_with)


def with_one_more_pass(cases: list[CaseCounts], index: int) -> list[CaseCounts]:
    better = replace(cases[index], passes_with=cases[index].passes_with + 1)
    return [*cases[:index], better, *cases[index + 1 :]]


def scaled(case: CaseCounts, factor: int) -> CaseCounts:
    return CaseCounts(
        case.passes_with * factor,
        case.runs_with * factor,
        case.passes_without * factor,
        case.runs_without * factor,
    )


@given(usable_suite)
@quick
def test_swapping_the_arms_mirrors_every_statement(cases: list[CaseCounts]) -> None:
    mirror = [swapped(case) for case in cases]

    here, there = lift_interval(cases), lift_interval(mirror)

    assert here is not None
    assert there is not None
    assert lift(mirror) == -(lift(cases) or 0.0)
    assert there == pytest.approx((-here.high, -here.low), abs=1e-9)
    assert lift_test(mirror) == pytest.approx(lift_test(cases), rel=1e-9)
    assert regression_test(mirror) == pytest.approx(1 - regression_test(cases), abs=1e-9)
    assert verdict(mirror) == SWAPPED[verdict(cases)]
    assert runs_needed(mirror) == runs_needed(cases)


@given(usable_suite, st.permutations(range(12)))
@quick
def test_the_order_of_cases_and_cases_with_an_empty_arm_change_nothing(
    cases: list[CaseCounts], order: list[int]
) -> None:
    shuffled = [cases[index] for index in order if index < len(cases)]
    shuffled.insert(1, CaseCounts(3, 4, 0, 0))

    assert lift(shuffled) == lift(cases)
    assert lift_test(shuffled) == pytest.approx(lift_test(cases), rel=1e-9)
    assert lift_interval(shuffled) == pytest.approx(lift_interval(cases), abs=1e-9)
    assert verdict(shuffled) == verdict(cases)


@given(usable_suite)
@quick
def test_intervals_contain_the_estimate_and_widen_with_the_level(cases: list[CaseCounts]) -> None:
    estimate = lift(cases)

    intervals = [lift_interval(cases, level) for level in (0.5, 0.9, 0.95, 0.999)]

    assert estimate is not None
    for narrow, wide in pairwise(intervals):
        assert narrow is not None
        assert wide is not None
        assert -1 <= wide.low <= narrow.low <= estimate <= narrow.high <= wide.high <= 1
        assert wide.low < wide.high


@given(planned_suites(), st.floats(-1, 1))
@quick
def test_the_interval_is_all_lifts_the_score_accepts(
    cases: list[CaseCounts], difference: float
) -> None:
    estimate, interval = lift(cases), lift_interval(cases)
    assert estimate is not None
    assert interval is not None
    assume(min(abs(difference - edge) for edge in (*interval, estimate)) > 1e-9)

    reach = two_sided_z(0.95) * math.sqrt(score_variance(Counter(cases), difference))

    assert (interval.low < difference < interval.high) == (abs(estimate - difference) <= reach)


@given(usable_suite, st.integers(0, 11))
@quick
def test_one_more_pass_with_the_skill_raises_the_lift_and_never_the_evidence_against_it(
    cases: list[CaseCounts], position: int
) -> None:
    index = position % len(cases)
    assume(cases[index].passes_with < cases[index].runs_with)
    better = with_one_more_pass(cases, index)

    assert (lift(better) or 0.0) > (lift(cases) or 0.0)
    assert regression_test(better) >= regression_test(cases) - 1e-12


@given(planned_suites(equal_arms=True), st.integers(0, 11))
@quick
def test_one_more_pass_with_the_skill_lowers_neither_limit_where_all_runs_are_equal(
    cases: list[CaseCounts], position: int
) -> None:
    index = position % len(cases)
    assume(cases[index].passes_with < cases[index].runs_with)

    before, after = lift_interval(cases), lift_interval(with_one_more_pass(cases, index))

    assert before is not None
    assert after is not None
    assert after.low >= before.low - 1e-9
    assert after.high >= before.high - 1e-9


@given(usable_suite)
@quick
def test_more_runs_of_the_same_rates_narrow_the_interval(cases: list[CaseCounts]) -> None:
    few, many = lift_interval(cases), lift_interval([scaled(case, 4) for case in cases])

    assert few is not None
    assert many is not None
    assert many.high - many.low < few.high - few.low


TEST_AGAINST_LIFT = [
    CaseCounts(*counts)
    for counts in (
        *((2, 2, 2, 9), (4, 4, 0, 1), (5, 7, 1, 3), (0, 10, 0, 1), (0, 11, 2, 8)),
        *((0, 11, 11, 12), (5, 12, 1, 4), (0, 12, 2, 8), (0, 12, 2, 8), (0, 12, 5, 8)),
    )
]
"""Such unequal numbers of runs that the lift is about 0, and the test says that the skill hurts."""


@given(usable_suite)
@example(TEST_AGAINST_LIFT)
@quick
def test_the_verdict_is_significant_or_within_the_margin(cases: list[CaseCounts]) -> None:
    said, estimate, p = verdict(cases), lift(cases) or 0.0, lift_test(cases)
    interval = lift_interval(cases, level=0.9)

    assert interval is not None
    if said in {"helps", "hurts"}:
        assert significant(p)
        assert (estimate > 0) == (said == "helps")
    elif said == "no effect":
        assert not significant(p)
        assert -0.15 < interval.low <= interval.high < 0.15


@given(st.lists(case_counts(min_runs=1, max_runs=5), min_size=1, max_size=6))
@quick
def test_the_runs_needed_give_a_verdict_if_the_rates_stay(cases: list[CaseCounts]) -> None:
    needed = runs_needed(cases)
    assume(needed is not None and needed < 60)
    assert needed is not None
    fewest = min(min(case.runs_with, case.runs_without) for case in cases)

    enough = [scaled(case, math.ceil(needed / fewest)) for case in cases]

    assert verdict(enough) in {"helps", "hurts"}


@given(any_suite, st.integers(0, 12), st.integers(1, 60))
@quick
def test_no_counts_crash_any_function(cases: list[CaseCounts], done: int, planned: int) -> None:
    assert verdict(cases) in SWAPPED
    assert 0 <= lift_test(cases) <= 1
    assert early_verdict(cases, done, planned) in {None, "helps", "hurts", "futile"}


@given(ps)
@quick
def test_holm_raises_every_p_and_keeps_their_order(values: list[float]) -> None:
    adjusted = holm(values)

    by_p = sorted(zip(values, adjusted, strict=True))
    assert all(p <= raised <= 1 for p, raised in by_p)
    assert all(first <= second for (_, first), (_, second) in pairwise(by_p))
