"""When a cell may stop before all its rounds are done: Haybittle-Peto.

A round is one run of every case in both arms. The looks after rounds 1..K-1 may stop at a very
small p only, and the last look pays for them (Haybittle 1971, Br J Radiol 44:793-797; Peto et al.
1976, Br J Cancer 34:585-612). Splitting alpha over the looks (Bonferroni) keeps the total strict.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pytest_upskill.stats.counts import CaseCounts, lift
from pytest_upskill.stats.exact_test import lift_test, significant

_INTERIM_ALPHA = 0.001


def early_verdict(
    cases: Sequence[CaseCounts], done: int, planned: int, alpha: float = 0.05
) -> Literal["helps", "hurts"] | None:
    """Tell the verdict that is already clear after a whole round, if any.

    Stops where ``lift_test`` is at most 0.001. Nothing stops for lack of an effect: that takes all
    the runs.

    Args:
        cases: Counts so far; cases that lack a run of these rounds in an arm are left out.
        done: Whole rounds done.
        planned: Rounds planned; the last one is judged by ``verdict`` at ``last_look_alpha``.
        alpha: Error rate of all looks together.
    """
    complete = [case for case in cases if case.runs_with == case.runs_without == done]
    estimate = lift(complete)
    if done >= planned or not estimate:
        return None
    if not significant(lift_test(complete), _interim_alpha(planned, alpha)):
        return None
    return "helps" if estimate > 0 else "hurts"


def last_look_alpha(planned: int, alpha: float = 0.05) -> float:
    """Give the level that is left for the last look: ``alpha - 0.001 (planned - 1)``.

    With so many rounds that the interim looks would take more than half of alpha, they share half.

    Args:
        planned: Rounds planned, at least 1.
        alpha: Error rate of all looks together.
    """
    return alpha - (planned - 1) * _interim_alpha(planned, alpha) if planned > 1 else alpha


def _interim_alpha(planned: int, alpha: float) -> float:
    return min(_INTERIM_ALPHA, alpha / 2 / (planned - 1))
