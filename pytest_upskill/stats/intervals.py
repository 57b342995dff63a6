"""Confidence intervals of a pass rate and of the lift, and the numerical functions for them."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from math import acos, comb, copysign, cos, exp, fsum, lgamma, log, log1p, pi, sqrt
from statistics import NormalDist

from pytest_upskill.stats.counts import CaseCounts, Estimate, Interval, lift, usable


def wilson_interval(rate: float, runs: float, level: float = 0.95) -> Interval:
    """Return Wilson's score interval of a rate (Wilson 1927, JASA 22:209-212).

    ``(p + z²/2n ± z √(p(1-p)/n + z²/4n²)) / (1 + z²/n)``

    Args:
        rate: Observed rate, from 0 to 1.
        runs: Number of runs above 0; weighted runs have an effective number that is not whole.
        level: Confidence level, from 0 to 1.
    """
    z = two_sided_z(level)
    scale = 1 + z * z / runs
    centre = rate + z * z / (2 * runs)
    reach = z * sqrt(rate * (1 - rate) / runs + z * z / (4 * runs * runs))
    # Rounding errors must not exclude the rate itself if it is 0 or 1.
    low, high = (centre - reach) / scale, (centre + reach) / scale
    return Interval(max(0.0, min(rate, low)), min(1.0, max(rate, high)))


def pass_at_k(cases: Sequence[tuple[int, int]], k: int) -> Estimate | None:
    """Return pass@k, the probability that at least one of k runs passes, with its 95 % interval.

    The mean over cases of ``1 - C(n-c, k) / C(n, k)`` for c passes of n runs, which is unbiased
    (Chen et al. 2021, arXiv:2107.03374). The interval is Wilson's for as many trials as there are
    distinct groups of k runs, the sum of ``floor(n / k)``.

    Args:
        cases: Passes and runs of each case; cases with fewer than k runs are left out.
        k: Number of runs, at least 1.
    """
    return _at_k(cases, k, lambda passes, runs: 1 - comb(runs - passes, k) / comb(runs, k))


def pass_hat_k(cases: Sequence[tuple[int, int]], k: int) -> Estimate | None:
    """Return pass^k, the probability that all of k runs pass, with its 95 % interval.

    The mean over cases of ``C(c, k) / C(n, k)``, with the interval of `pass_at_k`.

    Args:
        cases: Passes and runs of each case; cases with fewer than k runs are left out.
        k: Number of runs, at least 1.
    """
    return _at_k(cases, k, lambda passes, runs: comb(passes, k) / comb(runs, k))


def _at_k(
    cases: Sequence[tuple[int, int]], k: int, of: Callable[[int, int], float]
) -> Estimate | None:
    enough = [case for case in cases if case[1] >= k]
    if not enough:
        return None
    rate = fsum(of(*case) for case in enough) / len(enough)
    return Estimate(rate, *wilson_interval(rate, sum(runs // k for _, runs in enough)))


def lift_interval(cases: Sequence[CaseCounts], level: float = 0.95) -> Interval | None:
    """Return the stratified Miettinen-Nurminen score interval of the lift on these cases.

    It contains all δ with ``|lift - δ| <= z √V(δ)``, where V is ``score_variance``. Each case is a
    stratum, and all have the same weight (Miettinen & Nurminen 1985, Stat Med 4:213-226; R
    ``ratesci::scoreci(contrast="RD", stratified=TRUE, wt=1, skew=FALSE, bcf=TRUE)``). Its width is
    positive even if every run passes. It is too narrow where nearly all runs of an arm agree: with
    true rates of 0 without and 0.99 with the skill, 95 % intervals contain the lift in 85 % of the
    suites of 3 cases with 5 runs, and in 91 % of those of 10 cases. If the arms of cases have very
    unequal numbers of runs, such as 1 and 4, the set may have a gap at 0; the interval is then the
    part around the estimate.

    Args:
        cases: Counts per case; cases with an empty arm are left out.
        level: Confidence level, from 0 to 1.

    Returns:
        The interval within -1..1, or None if no case has runs in both arms.
    """
    cases = usable(cases)
    estimate = lift(cases)
    if estimate is None:
        return None
    z_squared = two_sided_z(level) ** 2
    alike = Counter(cases)

    def compatible(difference: float) -> bool:
        return (estimate - difference) ** 2 <= z_squared * score_variance(alike, difference)

    return Interval(boundary(compatible, estimate, -1.0), boundary(compatible, estimate, 1.0))


def two_sided_z(level: float) -> float:
    """Return z such that a standard normal variable lies within ±z with probability ``level``."""
    return NormalDist().inv_cdf((1 + level) / 2)


def score_variance(cases: Mapping[CaseCounts, int], difference: float) -> float:
    """Return the variance of the estimated lift if the true difference is the same in every case.

    ``(1/C²) Σ [p1(1-p1)/n1 + p0(1-p0)/n0] N/(N-1)``, with N = n1+n0, the maximum likelihood
    estimate of p0, and p1 = p0 + difference.

    Args:
        cases: Distinct counts, all usable, and how many cases have them.
        difference: The assumed difference, from -1 to 1.
    """
    total = 0.0
    for case, times in cases.items():
        without = _likeliest_rate_without(case, difference)
        with_ = without + difference
        runs = case.runs_with + case.runs_without
        variance = (
            with_ * (1 - with_) / case.runs_with + without * (1 - without) / case.runs_without
        )
        total += times * max(0.0, variance) * runs / (runs - 1)
    return total / sum(cases.values()) ** 2


def _likeliest_rate_without(case: CaseCounts, difference: float) -> float:
    """Return the maximum likelihood pass rate without, by Miettinen & Nurminen's cubic equation."""
    runs = case.runs_with + case.runs_without
    passes = case.passes_with + case.passes_without
    square = ((runs + case.runs_without) * difference - runs - passes) / (3 * runs)
    linear = (case.runs_without * difference - runs - 2 * case.passes_without) * difference + passes
    constant = case.passes_without * difference * (1 - difference)
    q = square**3 - square * linear / (2 * runs) + constant / (2 * runs)
    p = copysign(sqrt(max(0.0, square**2 - linear / (3 * runs))), q)
    # At a triple root p = q = 0, and the angle does not matter.
    angle = (pi + acos(min(1.0, max(-1.0, q / p**3)))) / 3 if p**3 else 0.0
    return min(max(2 * p * cos(angle) - square, -difference, 0.0), 1 - difference, 1.0)


def boundary(holds: Callable[[float], bool], start: float, end: float, *, steps: int = 60) -> float:
    """Return by bisection the point between ``start`` and ``end`` from which a condition is false.

    Args:
        holds: The condition, which is true at ``start`` and changes at most once.
        start: A point at which the condition is true.
        end: The other end of the search, which may be smaller.
        steps: How often the search is halved.
    """
    for _ in range(steps):
        middle = (start + end) / 2
        if holds(middle):
            start = middle
        else:
            end = middle
    return start


@cache  # most cells of a session have the same number of cases
def student_t_quantile(probability: float, df: float) -> float:
    """Return the quantile of Student's t distribution.

    It inverts ``P(T > t) = I_x(df/2, 1/2) / 2`` with ``x = df / (df + t²)`` (DLMF 8.17, Abramowitz
    & Stegun 26.7.1).

    Args:
        probability: At least 0.5, below 1.
        df: Degrees of freedom, at least 1, not necessarily an integer.
    """

    def within(t: float) -> bool:
        return _regularized_beta(df / (df + t * t), df / 2, 0.5) / 2 >= 1 - probability

    end = 1.0
    while within(end):
        end *= 2
    return boundary(within, 0.0, end)


def _regularized_beta(x: float, a: float, b: float) -> float:
    """Return I_x(a, b) by its continued fraction (DLMF 8.17.22), from the innermost term out."""
    if x in {0.0, 1.0}:
        return x
    if x > (a + 1) / (a + b + 2):  # the fraction converges fast only below this
        return 1 - _regularized_beta(1 - x, b, a)
    fraction = 1.0
    for m in range(60, 0, -1):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m - 1) * (a + b + m - 1) * x / ((a + 2 * m - 2) * (a + 2 * m - 1))
        fraction = 1 + odd / (1 + even / fraction)
    log_front = lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x)
    return exp(log_front) / (a * fraction)
