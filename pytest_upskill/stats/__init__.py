"""Statistics of one cell: lift, its interval, the verdict and the gate's test.

How labels correct the lift of a judge is in `calibration`, and how often a skill is chosen in
`triggers`, by one ``QueryCounts`` per query.

Every function is pure and takes counts of *valid* runs, one ``CaseCounts`` per case. All inferences
except ``population_interval`` are about a repetition of the same cases, not about new ones. Cases
without a valid run in one of the arms are left out. An estimate that the data do not determine is
``None``; a test without data has ``p = 1``.
"""

from __future__ import annotations

from pytest_upskill.stats.counts import CaseCounts, Estimate, Interval, lift
from pytest_upskill.stats.exact_test import holm, lift_test, regression_test, significant
from pytest_upskill.stats.intervals import (
    lift_interval,
    pass_at_k,
    pass_hat_k,
    population_interval,
)
from pytest_upskill.stats.verdicts import (
    MIN_RUNS,
    Verdict,
    chance_of_effect,
    early_alpha,
    early_verdict,
    fewest_runs,
    look_alpha,
    mixed,
    runs_needed,
    verdict,
)

__all__ = [
    "MIN_RUNS",
    "CaseCounts",
    "Estimate",
    "Interval",
    "Verdict",
    "chance_of_effect",
    "early_alpha",
    "early_verdict",
    "fewest_runs",
    "holm",
    "lift",
    "lift_interval",
    "lift_test",
    "look_alpha",
    "mixed",
    "pass_at_k",
    "pass_hat_k",
    "population_interval",
    "regression_test",
    "runs_needed",
    "significant",
    "verdict",
]
