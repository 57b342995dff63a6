"""The level of each look at a verdict, so that all of them together err as rarely as one.

A look that adds runs to recorded ones has a lower level than the one before (Lan & DeMets 1983,
Biometrika 70:659-663, on spending alpha). An early stop spends within the level of its look, by the
Haybittle-Peto rule. A round is one run of every case in both arms. After rounds 1 to K-1, it stops
only at a very small p, and the level after the last is reduced accordingly (Haybittle 1971, Br J
Radiol 44:793-797; Peto et al. 1976, Br J Cancer 34:585-612). By Bonferroni's inequality, the error
rate of all rounds is at most that level.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pytest_upskill.stats.counts import CaseCounts, lift
from pytest_upskill.stats.exact_test import lift_test, significant

_INTERIM_ALPHA = 0.001
_ALL_LOOKS = 0.08


def look_alpha(look: int) -> float:
    """Return the significance level of a look at a verdict.

    It is ``0.08 / (look (look + 1))``: 0.04, 0.013, 0.007 and so on. Their sum is more than 0.05,
    but looks share runs: whoever follows the advice on runs until it ends is told ``helps`` or
    ``hurts`` in 4 % of the cells without an effect, 5 % in the worst population (simulated).

    Args:
        look: 1 for the first look, and one more each time that runs are added.
    """
    return _ALL_LOOKS / (look * (look + 1))


def early_verdict(
    cases: Sequence[CaseCounts], done: int, planned: int, alpha: float = 0.05
) -> Literal["helps", "hurts"] | None:
    """Return the verdict at an interim look, or None to continue.

    It stops if the p-value of ``lift_test`` is at most 0.001. There is no early stop for lack of an
    effect, which takes all runs to show.

    Args:
        cases: Counts so far; cases with a missing run in these rounds are left out.
        done: Number of complete rounds.
        planned: Number of planned rounds; ``verdict`` at ``last_look_alpha`` follows the last.
        alpha: Error rate of all looks together, from 0 to 1.
    """
    complete = [case for case in cases if case.runs_with == case.runs_without == done]
    estimate = lift(complete)
    if done >= planned or not estimate:
        return None
    if not significant(lift_test(complete), _interim_alpha(planned, alpha)):
        return None
    return "helps" if estimate > 0 else "hurts"


def last_look_alpha(planned: int, alpha: float = 0.05) -> float:
    """Return the significance level of the last look, ``alpha - 0.001 (planned - 1)``.

    The interim looks take at most half of alpha, which they share if there are many rounds.

    Args:
        planned: Number of planned rounds, at least 1.
        alpha: Error rate of all looks together, from 0 to 1.
    """
    return alpha - (planned - 1) * _interim_alpha(planned, alpha) if planned > 1 else alpha


def _interim_alpha(planned: int, alpha: float) -> float:
    return min(_INTERIM_ALPHA, alpha / 2 / (planned - 1))
