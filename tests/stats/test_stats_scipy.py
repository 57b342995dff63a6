"""The statistics agree with SciPy."""

from __future__ import annotations

from math import sqrt
from statistics import NormalDist

import numpy as np
import pytest

# Its parts are imported when they are used: this module is imported by every worker.
import scipy  # type: ignore[import-untyped]  # ships no types
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_upskill.stats import (
    CaseCounts,
    early_alpha,
    lift_test,
    regression_test,
)
from pytest_upskill.stats.intervals import (
    score_variance,
    student_t_quantile,
    two_sided_z,
    wilson_interval,
)
from tests.stats.counting import case_counts

quick = settings(deadline=None, max_examples=40)


@pytest.mark.slow
@given(st.lists(case_counts(1, 10), min_size=1, max_size=8))
@quick
def test_the_null_distribution_is_a_convolution_of_hypergeometrics(cases: list[CaseCounts]) -> None:
    pmf = np.ones(1)
    for case in cases:
        passes = case.passes_with + case.passes_without
        runs = case.runs_with + case.runs_without
        pmf = np.convolve(
            pmf,
            scipy.stats.hypergeom(runs, passes, case.runs_with).pmf(np.arange(case.runs_with + 1)),
        )
    seen = sum(case.passes_with for case in cases)
    less = pmf[:seen].sum() + pmf[seen] / 2
    more = pmf[seen + 1 :].sum() + pmf[seen] / 2

    assert regression_test(cases) == pytest.approx(less, rel=1e-9)
    assert lift_test(cases) == pytest.approx(min(1, 2 * min(less, more)), rel=1e-9)


@given(st.floats(0.6, 0.9999), st.floats(1, 5000))
@quick
def test_student_quantiles_agree(probability: float, df: float) -> None:
    expected = scipy.stats.t.ppf(probability, df)

    assert student_t_quantile(probability, df) == pytest.approx(expected, rel=1e-8)


@given(st.floats(0.01, 0.9999))
@quick
def test_normal_quantiles_agree(level: float) -> None:
    assert two_sided_z(level) == pytest.approx(scipy.stats.norm.ppf((1 + level) / 2), rel=1e-9)


@given(st.integers(1, 300), st.data(), st.sampled_from([0.8, 0.95, 0.99]))
@quick
def test_wilson_intervals_agree(runs: int, data: st.DataObject, level: float) -> None:
    passes = data.draw(st.integers(0, runs))
    expected = scipy.stats.binomtest(passes, runs).proportion_ci(level, method="wilson")

    assert wilson_interval(passes / runs, runs, level) == pytest.approx(
        (expected.low, expected.high), abs=1e-9
    )


@given(case_counts(1, 10), st.floats(-0.98, 0.98))
@quick
def test_the_score_variance_is_that_at_the_likeliest_rates(
    case: CaseCounts, difference: float
) -> None:
    def surprise(without: float) -> float:
        return -float(
            scipy.stats.binom.logpmf(case.passes_without, case.runs_without, without)
            + scipy.stats.binom.logpmf(case.passes_with, case.runs_with, without + difference)
        )

    ends = (max(0.0, -difference) + 1e-12, min(1.0, 1 - difference) - 1e-12)
    likeliest = scipy.optimize.minimize_scalar(
        surprise, bounds=ends, method="bounded", options={"xatol": 1e-10}
    ).x
    with_ = likeliest + difference
    runs = case.runs_with + case.runs_without
    expected = (
        with_ * (1 - with_) / case.runs_with + likeliest * (1 - likeliest) / case.runs_without
    )

    assert score_variance({case: 1}, difference) == pytest.approx(
        expected * runs / (runs - 1), abs=1e-5
    )


@pytest.mark.parametrize("rounds", [2, 3, 5])
def test_the_bounds_of_an_early_stop_have_an_eighth_more_errors_than_one_look(rounds: int) -> None:
    levels = [early_alpha(done, rounds, 0.04) for done in range(1, rounds + 1)]

    bounds = [-NormalDist().inv_cdf(level / 2) for level in levels]
    assert bounds == pytest.approx(
        [bounds[-1] * (look / rounds) ** -0.35 for look in range(1, rounds + 1)]
    )
    # Scores of looks at growing data: their correlation is the root of the ratio of the sizes.
    correlation = [
        [sqrt(min(a, b) / max(a, b)) for a in range(1, rounds + 1)] for b in range(1, rounds + 1)
    ]
    within = scipy.stats.multivariate_normal(cov=correlation).cdf(
        bounds, lower_limit=[-bound for bound in bounds]
    )
    assert 1 - within == pytest.approx(1.125 * 0.04, abs=0.0005)
