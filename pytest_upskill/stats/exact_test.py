"""Exact tests for a difference between two arms, stratified by case, and Holm's correction."""

from collections.abc import Sequence
from math import comb, fsum

from pytest_upskill.stats.counts import CaseCounts, usable

_NEGLIGIBLE = 1e-60
_ROUNDING = 1e-12


def lift_test(cases: Sequence[CaseCounts]) -> float:
    """Return the two-sided p-value for a difference between the arms.

    It is twice the smaller mid-p tail of the exact conditional Mantel-Haenszel test (R
    ``mantelhaen.test(exact=TRUE)``; mid-p: Fagerland, Lydersen & Laake 2013, BMC Med Res Methodol
    13:91). Under the null hypothesis that no pass rate depends on the arm, and given the total of
    passes of each case, the ``passes_with`` are independent hypergeometric variables. The tails are
    those of their sum, with half the probability of the observed sum. For one case it is Fisher's
    test, for one run per case and arm it is McNemar's test.

    Args:
        cases: Counts per case; cases with an empty arm are left out.

    Returns:
        p from 0 to 1, accurate to about 12 digits; 1 without usable cases. p below 1e-50 may be 0.
    """
    return min(1.0, 2 * min(mid_p_tails(cases)))


def regression_test(cases: Sequence[CaseCounts]) -> float:
    """Return the one-sided mid-p that the *with* arm passes less often.

    For a gate, *with* is the skill in the pull request and *without* is the baseline. The test
    statistic is that of ``lift_test``.

    Args:
        cases: Counts per case; cases with an empty arm are left out.

    Returns:
        p from 0 to 1; 1 without usable cases.
    """
    return mid_p_tails(cases)[0]


def significant(p: float, alpha: float = 0.05) -> bool:
    """Return whether ``p`` is at most ``alpha``, with a tolerance for rounding errors."""
    return p <= alpha + _ROUNDING


def holm(ps: Sequence[float]) -> list[float]:
    """Return p-values adjusted by Holm's method, which controls the family-wise error rate.

    ``max over j <= i of min(1, (m - j + 1) p_(j))`` (Holm 1979, Scand J Statist 6:65-70).

    Args:
        ps: The p-values of a family of tests.

    Returns:
        The adjusted p-values, in the same order.
    """
    adjusted = [0.0] * len(ps)
    running = 0.0
    for rank, index in enumerate(sorted(range(len(ps)), key=ps.__getitem__)):
        running = max(running, min(1.0, (len(ps) - rank) * ps[index]))
        adjusted[index] = running
    return adjusted


def mid_p_tails(cases: Sequence[CaseCounts]) -> tuple[float, float]:
    """Return the mid-p that the *with* arm passes less often, and that it passes more often."""
    cases = usable(cases)
    if not cases:
        return 1.0, 1.0
    lowest, probabilities = _passes_if_equal(cases)
    index = sum(case.passes_with for case in cases) - lowest
    # An observation in a trimmed tail has a negligible probability.
    split = min(max(index, 0), len(probabilities))
    here = probabilities[index] if 0 <= index < len(probabilities) else 0.0
    below, above = fsum(probabilities[:split]), fsum(probabilities[split + 1 :])
    return min(1.0, below + here / 2), min(1.0, above + here / 2)


def _passes_if_equal(cases: Sequence[CaseCounts]) -> tuple[int, list[float]]:
    """Return the smallest sum of ``passes_with``, and the probabilities of all sums from it on.

    The null hypothesis is that the arms are equal. Floats are accurate enough, because only
    positive numbers are multiplied and added. Tails below ``_NEGLIGIBLE`` are trimmed, which bounds
    the cost for hundreds of cases.
    """
    lowest, probabilities = 0, [1.0]
    for case in cases:
        first, weights = _hypergeometric(case)
        lowest, probabilities = _trim(lowest + first, _convolve(probabilities, weights))
    return lowest, probabilities


def _hypergeometric(case: CaseCounts) -> tuple[int, list[float]]:
    passes = case.passes_with + case.passes_without
    ways = comb(case.runs_with + case.runs_without, passes)
    first = max(0, passes - case.runs_without)
    return first, [
        comb(case.runs_with, k) * comb(case.runs_without, passes - k) / ways
        for k in range(first, min(case.runs_with, passes) + 1)
    ]


def _convolve(left: Sequence[float], right: Sequence[float]) -> list[float]:
    total = [0.0] * (len(left) + len(right) - 1)
    for shift, weight in enumerate(right):
        for index, probability in enumerate(left, shift):
            total[index] += weight * probability
    return total


def _trim(lowest: int, probabilities: list[float]) -> tuple[int, list[float]]:
    kept = [i for i, probability in enumerate(probabilities) if probability > _NEGLIGIBLE]
    return lowest + kept[0], probabilities[kept[0] : kept[-1] + 1]
