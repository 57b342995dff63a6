"""The lift is corrected by labels, as a judge may err more in one arm than in the other."""

from __future__ import annotations

import random
from fractions import Fraction
from statistics import fmean

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_upskill.stats import CaseCounts, lift, lift_interval
from pytest_upskill.stats.calibration import (
    STRATA,
    JudgedCase,
    JudgedRuns,
    Label,
    agreement,
    answers_of,
    correct_lift,
    corrected_verdict,
    lacking_labels,
)

quick = settings(deadline=None, max_examples=60)
counts = st.integers(0, 4)


@st.composite
def arms(draw: st.DrawFn) -> JudgedRuns:
    passes, fails, others, more = draw(counts), draw(counts), draw(counts), draw(counts)
    runs = max(1, passes + fails + others + more)
    return JudgedRuns(passes + more, runs, passes, fails)


@st.composite
def labelled(draw: st.DrawFn) -> tuple[list[JudgedCase], list[Label]]:
    """Cases, and a label of each answer that depended on the judge."""
    cases = [JudgedCase(draw(arms()), draw(arms())) for _ in range(draw(st.integers(1, 5)))]
    labels = [
        Label(index, with_skill, judged, draw(st.booleans()))
        for index, case in enumerate(cases)
        for with_skill, judged in STRATA
        for _ in range(answers_of([case], (with_skill, judged)))
    ]
    return cases, labels


def arms_of(passes_with: int, passes_without: int, runs: int = 50) -> list[JudgedCase]:
    """One case in which every run depended on the judge."""
    return [
        JudgedCase(
            JudgedRuns(passes_with, runs, passes_with, runs - passes_with),
            JudgedRuns(passes_without, runs, passes_without, runs - passes_without),
        )
    ]


def agreeing(cases: list[JudgedCase], each: int = 10) -> list[Label]:
    return [
        Label(0, *stratum, stratum[1])
        for stratum in STRATA
        for _ in range(min(each, answers_of(cases, stratum)))
    ]


@quick
@given(labelled())
def test_labels_that_all_agree_leave_the_lift_as_judged(
    given: tuple[list[JudgedCase], list[Label]],
) -> None:
    cases, labels = given

    corrected = correct_lift(
        cases, [Label(x.case, x.with_skill, x.judged, x.judged) for x in labels]
    )

    assert corrected is not None
    judged = [case.counts for case in cases]
    assert corrected.lift.estimate == lift(judged)
    interval = (corrected.lift.low, corrected.lift.high)
    assert interval == pytest.approx(lift_interval(judged))


@quick
@given(labelled())
def test_labels_of_every_answer_give_the_true_lift(
    given: tuple[list[JudgedCase], list[Label]],
) -> None:
    cases, labels = given
    passes = {
        (index, arm): runs.passes
        - runs.judged_passes
        + sum(x.passed for x in labels if (x.case, x.with_skill) == (index, arm))
        for index, case in enumerate(cases)
        for arm, runs in ((True, case.with_skill), (False, case.without_skill))
    }
    truth = fmean(
        Fraction(passes[index, True], case.with_skill.runs)
        - Fraction(passes[index, False], case.without_skill.runs)
        for index, case in enumerate(cases)
    )

    corrected = correct_lift(cases, labels)

    assert corrected is not None
    assert corrected.lift.estimate == pytest.approx(float(truth), abs=1e-12)


@quick
@given(labelled(), st.randoms(use_true_random=False))
def test_the_order_of_labels_never_matters(
    given: tuple[list[JudgedCase], list[Label]], shuffle: random.Random
) -> None:
    cases, labels = given
    shuffled = labels.copy()
    shuffle.shuffle(shuffled)

    assert correct_lift(cases, shuffled) == correct_lift(cases, labels)


def test_leniency_towards_one_arm_is_taken_off_the_lift() -> None:
    cases = arms_of(30, 20)
    labels = agreeing(cases)
    wrong = [Label(0, True, True, False) if x == Label(0, True, True, True) else x for x in labels]
    half = [*wrong[:5], *labels[5:]]

    corrected = correct_lift(cases, half)

    assert lift([case.counts for case in cases]) == pytest.approx(0.2)
    assert corrected is not None
    assert corrected.lift.estimate == pytest.approx(0.2 - 0.6 * 0.5)


def test_labels_of_other_answers_say_less_about_these() -> None:
    cases = arms_of(30, 20)
    labels = agreeing(cases)

    of_these, of_others = (correct_lift(cases, labels, sampled=each) for each in (True, False))

    assert of_these is not None
    assert of_others is not None
    these, others = of_these.lift, of_others.lift
    assert these.estimate == others.estimate
    assert others.low < these.low < these.high < others.high


def test_a_stratum_without_a_label_leaves_the_lift_uncorrected() -> None:
    cases = arms_of(30, 20)
    without_one = [label for label in agreeing(cases) if label != Label(0, False, True, True)]

    assert correct_lift(cases, without_one) is None
    assert corrected_verdict(cases, without_one) == "too few runs"


def test_a_stratum_takes_ten_labels_or_all_of_its_answers() -> None:
    cases = arms_of(47, 50)

    assert lacking_labels(cases, []) == [
        ((True, True), 10),
        ((True, False), 3),
        ((False, True), 10),
    ]
    assert lacking_labels(cases, agreeing(cases)) == []


@pytest.mark.parametrize(
    ("cases", "verdict"),
    [
        (arms_of(45, 15), "helps"),
        (arms_of(15, 45), "hurts"),
        (arms_of(26, 24), "too few runs"),
        (arms_of(1000, 1000, runs=1000), "no effect"),
        (arms_of(2, 0, runs=2), "too few runs"),
    ],
)
def test_the_corrected_interval_gives_the_verdict(cases: list[JudgedCase], verdict: str) -> None:
    assert corrected_verdict(cases, agreeing(cases, each=40)) == verdict


def test_a_case_without_runs_in_an_arm_is_left_out() -> None:
    cases = arms_of(30, 20)
    more = [*cases, JudgedCase(JudgedRuns(3, 5, 3, 2), JudgedRuns(0, 0, 0, 0))]

    assert correct_lift(more, agreeing(cases)) == correct_lift(cases, agreeing(cases))


def test_agreement_weighs_labels_by_the_answers_they_stand_for() -> None:
    found = agreement((40, [True] * 10), (10, [True] * 5 + [False] * 5))

    assert found.holds is not None
    assert found.fails is not None
    # Of 40 passes all hold, and of 10 fails five: the judge accepts 40 of 45 that are correct.
    assert found.holds.estimate == pytest.approx(40 / 45)
    assert found.fails.estimate == 1.0
    assert found.holds.low < 40 / 45 < found.holds.high
    assert agreement((25, []), (25, [])).holds is None


@pytest.mark.parametrize("wrong", [(1, 2, 2, 0), (1, 2, 0, 2), (3, 2, 0, 0), (1, 2, -1, 0)])
def test_impossible_counts_are_refused(wrong: tuple[int, int, int, int]) -> None:
    with pytest.raises(ValueError, match="a part cannot be larger"):
        JudgedRuns(*wrong)


def test_counts_by_the_judge_are_those_of_a_case() -> None:
    (case,) = arms_of(30, 20)

    assert case.counts == CaseCounts(30, 50, 20, 50)
