"""The verdict of a cell: helps, no effect, hurts, or too few runs.

A verdict may be looked at again and again. A look that adds runs to recorded ones has a lower level
than the one before (Lan & DeMets 1983, Biometrika 70:659-663, on spending alpha). An early stop
looks after each round, which is one run of every case in both arms, and the levels of its rounds
together have an error rate an eighth above that of its look.
"""

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from math import ceil, sqrt
from statistics import NormalDist
from typing import Literal

from pytest_upskill.stats.counts import CaseCounts, lift, usable
from pytest_upskill.stats.exact_test import mid_p_tails, significant
from pytest_upskill.stats.intervals import boundary, lift_interval, score_variance, two_sided_z

Verdict = Literal["helps", "no effect", "hurts", "too few runs"]

MIN_RUNS = 5
"""Minimum number of valid runs per arm, over all cases, for a verdict."""

MARGIN = 0.15
"""The largest lift that is too small to matter, as a fraction."""

NO_EFFECT_ALPHA = 0.05
"""Error rate of ``no effect`` at every look, as looks hardly add to it."""

_DELTA = 0.15
"""Shape of the bounds of an early stop: 0 is O'Brien and Fleming's, 0.5 Pocock's."""
_EARLY_SHARE = 1.125
"""Error rate of an early stop, as a share of its look's: what repays the power that it costs."""
_FUTILE = 0.02
_INTERVALS = 20
"""Even number of intervals from 0 to a bound, for integration."""

_LIFT_SD = 0.1
"""Standard deviation of lifts that skills may have, before any run."""


def verdict(cases: Sequence[CaseCounts], alpha: float = 0.05, margin: float = MARGIN) -> Verdict:
    """Return the verdict on whether the skill helps on these cases.

    With fewer than ``MIN_RUNS`` runs in an arm, it is ``too few runs``. It is ``helps`` or
    ``hurts`` if ``lift_test`` is significant and the lift has that sign, and ``no effect`` if the
    90 % interval lies within ±margin, that is, by two one-sided tests at 0.05 (Schuirmann 1987, J
    Pharmacokinet Biopharm 15:657-680). In all other cases, also if the test and the lift contradict
    each other, it is ``too few runs``.

    Args:
        cases: Counts per case; cases with an empty arm are left out.
        alpha: Error rate of ``helps`` and ``hurts``, from 0 to 1.
        margin: The largest lift that is too small to matter, as a fraction.
    """
    cases = usable(cases)
    estimate = lift(cases)
    if estimate is None or fewest_runs(cases) < MIN_RUNS:
        return "too few runs"
    less, more = mid_p_tails(cases)
    # Twice a tail: the test is two-sided.
    if estimate > 0 and significant(2 * more, alpha):
        return "helps"
    if estimate < 0 and significant(2 * less, alpha):
        return "hurts"
    if significant(2 * min(less, more), alpha):
        # Very unequal numbers of runs gave test and lift opposite signs.
        return "too few runs"
    interval = lift_interval(cases, 1 - 2 * NO_EFFECT_ALPHA)
    if interval is not None and -margin < interval.low and interval.high < margin:
        return "no effect"
    return "too few runs"


def look_alpha(look: int, total: float = 0.08) -> float:
    """Return the significance level of a look, ``total / (look (look + 1))``.

    The levels of all looks sum to ``total``, so there may be any number of them (Foster & Stine
    2008, J R Stat Soc B 70:429-444, on alpha spending). Those at a verdict are 0.04, 0.013, 0.007
    and so on. Their sum is more than 0.05, but looks share runs: whoever follows the advice on runs
    until it ends is told ``helps`` or ``hurts`` in 4 % of the cells without an effect, 5 % in the
    worst population (simulated).

    Args:
        look: 1 for the first look, and one more each time that runs are added.
        total: Sum of the levels of all looks.
    """
    return total / (look * (look + 1))


def early_verdict(
    cases: Sequence[CaseCounts], done: int, planned: int, alpha: float = 0.05
) -> Literal["helps", "hurts", "futile"] | None:
    """Return why no further round is needed, or None to continue.

    It is ``helps`` or ``hurts`` if ``verdict`` is, at ``early_alpha``. From half of the rounds
    on, it is ``futile`` if the last look will be significant with a probability under 2 %. That
    cannot add to the error rate.

    Args:
        cases: Counts so far; cases with a missing run in these rounds are left out.
        done: Number of complete rounds.
        planned: Number of planned rounds.
        alpha: Error rate of one look after all rounds, from 0 to 1.
    """
    complete = [case for case in cases if case.runs_with == case.runs_without == done]
    if not complete or not 0 < done < planned:
        return None
    found = verdict(complete, early_alpha(done, planned, alpha))
    if found in ("helps", "hurts"):
        return found
    if 2 * done < planned or fewest_runs(complete) < MIN_RUNS:
        return None
    chance = chance_of_effect(complete, planned, early_alpha(planned, planned, alpha))
    return "futile" if chance is not None and chance < _FUTILE else None


def early_alpha(done: int, planned: int, alpha: float = 0.05) -> float:
    """Return the significance level of a look after some of the planned rounds, or after the last.

    The bound of |z| after a share t of the rounds is ``c t^-0.35`` (Wang & Tsiatis 1987, Biometrics
    43:193-199, with Δ = 0.15), where c makes the error rate of all looks 1.125 alpha. With alpha
    itself, an effect that all runs would show would be missed in one or two cells of a hundred. The
    exact tests keep most of the difference: of the cells without an effect, 4 % are said to have
    one at alpha = 0.04, 5 % in the worst population (simulated).

    Args:
        done: Number of complete rounds, from 1 to ``planned``.
        planned: Number of planned rounds.
        alpha: Error rate of one look after all rounds, from 0 to 1.
    """
    if planned == 1:
        return alpha
    bound = _bound(planned, _EARLY_SHARE * alpha) * (done / planned) ** (_DELTA - 0.5)
    return 2 * NormalDist().cdf(-bound)


@cache
def _bound(looks: int, alpha: float) -> float:
    """Return the bound of |z| at the last look, by bisection."""
    return boundary(lambda bound: _crossing(looks, bound) <= alpha, 8.0, 0.0, steps=18)


def _crossing(looks: int, bound: float) -> float:
    """Return the probability that a test without an effect exceeds its bound at one of the looks.

    The score grows by independent normal steps of equal variance. Its density within the bounds is
    integrated from look to look by Simpson's rule (Armitage, McPherson & Rowe 1969, J R Stat Soc A
    132:235-244).
    """
    step = NormalDist(0, sqrt(1 / looks))
    mass = {0.0: 1.0}
    for look in range(1, looks + 1):
        width = bound * (look / looks) ** _DELTA / _INTERVALS
        within = {}
        for index in range(_INTERVALS + 1):
            weight = 1 if index == _INTERVALS else 4 if index % 2 else 2
            density = sum(share * step.pdf(index * width - x) for x, share in mass.items())
            # The density is symmetric.
            within[index * width] = within[-index * width] = weight * width / 3 * density
        mass = within
    return 1 - sum(mass.values())


def runs_needed(cases: Sequence[CaseCounts], alpha: float = 0.05, power: float = 0.8) -> int | None:
    """Estimate how many runs per case and arm would show the observed lift, if it is the true one.

    ``K (z_(1-alpha/2) + z_power)² / χ²``, where K is the mean number of runs per case and arm, and
    χ² is the Cochran-Mantel-Haenszel statistic without continuity correction, which is proportional
    to the number of runs.

    Args:
        cases: Counts per case; cases with an empty arm are left out.
        alpha: Error rate of the two-sided test, from 0 to 1.
        power: Probability of detecting the lift, from 0.5 to 1.

    Returns:
        Runs per case and arm, enough for ``MIN_RUNS`` too; None if the lift is 0 or unknown, or if
        unequal numbers of runs give the test statistic the opposite sign.
    """
    cases = usable(cases)
    estimate = lift(cases)
    if not estimate:
        return None
    z = _mantel_haenszel_z(cases)
    if z * estimate <= 0:
        return None
    z_wanted = two_sided_z(1 - alpha) + NormalDist().inv_cdf(power)
    return ceil(max(_mean_runs(cases) * (z_wanted / z) ** 2, MIN_RUNS / len(cases)))


def chance_of_effect(cases: Sequence[CaseCounts], runs: int, alpha: float = 0.05) -> float | None:
    """Estimate the probability that more runs will show that the skill helps or hurts.

    It is the predictive power, by a normal approximation (Spiegelhalter, Freedman & Blackburn 1986,
    Control Clin Trials 7:8-17). An observed lift is too large on average where it was almost
    significant, so it is shrunk: before the first run, a lift is thought to be 0 ± 10 points.

    Args:
        cases: Counts per case; cases with an empty arm are left out.
        runs: Number of runs per case and arm, the recorded ones included.
        alpha: Error rate of the two-sided test of all runs, from 0 to 1.

    Returns:
        The probability, or None if the lift or its variance is unknown.
    """
    cases = usable(cases)
    estimate = lift(cases)
    variance = score_variance(Counter(cases), 0.0) if cases else 0.0
    if estimate is None or not variance:
        return None
    shrinkage = _LIFT_SD**2 / (_LIFT_SD**2 + variance)
    # Information is the inverse of a variance; that of the lift grows with the number of runs.
    information = 1 / variance
    total = max(1.0, runs / _mean_runs(cases)) * information
    more = total - information
    z = (estimate * information + shrinkage * estimate * more) / sqrt(total)
    spread = sqrt((more + shrinkage * variance * more**2) / total)
    limit = two_sided_z(1 - alpha)
    if not spread:
        return float(abs(z) >= limit)
    return NormalDist(z, spread).cdf(-limit) + 1 - NormalDist(z, spread).cdf(limit)


def _mantel_haenszel_z(cases: Sequence[CaseCounts]) -> float:
    """Return the sum of ``passes_with``, standardized under the hypothesis of equal arms."""
    excess = variance = Fraction(0)
    for case in cases:
        runs = case.runs_with + case.runs_without
        rate = Fraction(case.passes_with + case.passes_without, runs)
        excess += case.passes_with - case.runs_with * rate
        variance += case.runs_with * case.runs_without * rate * (1 - rate) / (runs - 1)
    return float(excess) / sqrt(variance) if variance else 0.0


def _mean_runs(cases: Sequence[CaseCounts]) -> float:
    """Return the mean number of runs per case and arm."""
    return sum(case.runs_with + case.runs_without for case in cases) / (2 * len(cases))


def fewest_runs(cases: Sequence[CaseCounts]) -> int:
    """Return the number of runs of the arm that has fewer, over all cases."""
    return min(sum(case.runs_with for case in cases), sum(case.runs_without for case in cases))
