"""Statistics of one cell: lift, its interval, the verdict and the gate's test.

Those of triggers, ``query_rate`` and the like, take one ``QueryCounts`` per query instead.

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
from pytest_upskill.stats.judged import (
    MIN_LABELS,
    STRATA,
    Agreement,
    Correction,
    JudgedCase,
    JudgedRuns,
    Label,
    agreement,
    answers_of,
    correct_lift,
    corrected_verdict,
    lacking_labels,
)
from pytest_upskill.stats.triggers import (
    QueryCounts,
    query_interval,
    query_rate,
    trigger_precision,
)
from pytest_upskill.stats.verdicts import (
    MIN_RUNS,
    Verdict,
    chance_of_effect,
    early_alpha,
    early_verdict,
    look_alpha,
    mixed,
    runs_needed,
    verdict,
)

__all__ = [
    "MIN_LABELS",
    "MIN_RUNS",
    "STRATA",
    "Agreement",
    "CaseCounts",
    "Correction",
    "Estimate",
    "Interval",
    "JudgedCase",
    "JudgedRuns",
    "Label",
    "QueryCounts",
    "Verdict",
    "agreement",
    "answers_of",
    "chance_of_effect",
    "correct_lift",
    "corrected_verdict",
    "early_alpha",
    "early_verdict",
    "holm",
    "lacking_labels",
    "lift",
    "lift_interval",
    "lift_test",
    "look_alpha",
    "mixed",
    "pass_at_k",
    "pass_hat_k",
    "population_interval",
    "query_interval",
    "query_rate",
    "regression_test",
    "runs_needed",
    "significant",
    "trigger_precision",
    "verdict",
]
