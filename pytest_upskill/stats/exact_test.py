"""Exact tests of whether two arms differ, stratified by case, and their correction for many."""

from __future__ import annotations

from collections.abc import Sequence
from math import comb, fsum

from pytest_upskill.stats.counts import CaseCounts, usable

_NEGLIGIBLE = 1e-60
_ROUNDING = 1e-12


def lift_test(cases: Sequence[CaseCounts]) -> float:
    """Test whether the arms differ: two-sided p, twice the smaller mid-p tail.

    If no case's pass rate depends on the arm then, given every case's total of passes,
    ``passes_with`` is hypergeometric, independently over cases. The tails are those of the sum of
    ``passes_with`` over cases, with half the probability of the observed sum. One case: Fisher's
    test; one run per case and arm: McNemar's; in general the exact conditional test of
    Mantel-Haenszel (R ``mantelhaen.test(exact=TRUE)``; mid-p: Fagerland, Lydersen & Laake 2013,
    BMC Med Res Methodol 13:91).

    Args:
        cases: Counts per case; cases with an empty arm are left out.

    Returns:
        p from 0 to 1, right to about 12 digits; 1 without usable cases. Below 1e-50 it may be 0.
    """
    return min(1.0, 2 * min(mid_p_tails(cases)))


def regression_test(cases: Sequence[CaseCounts]) -> float:
    """Test whether the *with* arm passes less often: one-sided mid-p.

    For a gate, *with* is the skill as the pull request has it and *without* is the baseline. The
    statistic is that of ``lift_test``.

    Args:
        cases: Counts per case; cases with an empty arm are left out.

    Returns:
        p from 0 to 1; 1 without usable cases.
    """
    return mid_p_tails(cases)[0]


def significant(p: float, alpha: float = 0.05) -> bool:
    """Tell whether ``p`` is at most ``alpha``; a tie, which counts, survives rounding."""
    return p <= alpha + _ROUNDING


def holm(ps: Sequence[float]) -> list[float]:
    """Adjust p-values so that rejecting those up to alpha keeps the family-wise error at alpha.

    ``max over j <= i of min(1, (m - j + 1) p_(j))`` (Holm 1979, Scand J Statist 6:65-70).

    Args:
        ps: One p-value per cell.

    Returns:
        The adjusted p-values, in the order given.
    """
    adjusted = [0.0] * len(ps)
    running = 0.0
    for rank, index in enumerate(sorted(range(len(ps)), key=ps.__getitem__)):
        running = max(running, min(1.0, (len(ps) - rank) * ps[index]))
        adjusted[index] = running
    return adjusted


def mid_p_tails(cases: Sequence[CaseCounts]) -> tuple[float, float]:
    """Give the mid-p that the *with* arm passes less often, and that it passes more often."""
    cases = usable(cases)
    if not cases:
        return 1.0, 1.0
    lowest, probabilities = _passes_if_equal(cases)
    index = sum(case.passes_with for case in cases) - lowest
    # Beyond the ends kept, an observation has no probability worth counting.
    split = min(max(index, 0), len(probabilities))
    here = probabilities[index] if 0 <= index < len(probabilities) else 0.0
    below, above = fsum(probabilities[:split]), fsum(probabilities[split + 1 :])
    return min(1.0, below + here / 2), min(1.0, above + here / 2)


def _passes_if_equal(cases: Sequence[CaseCounts]) -> tuple[int, list[float]]:
    """Give the smallest sum of ``passes_with`` and the probabilities of it and those above.

    Floats do: only positive numbers are multiplied and added, so errors stay relative. Ends below
    ``_NEGLIGIBLE`` are cut, which bounds the cost of hundreds of cases.
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
