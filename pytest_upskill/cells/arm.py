"""Figures of one arm of a cell."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from statistics import fmean

from pytest_upskill.trials.result import RunResult


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmFigures:
    """Figures of one arm of a cell; each case has the same weight, whatever its number of runs."""

    runs: int
    """Valid runs."""
    passes: int
    """Valid runs in which every check passed."""
    pass_rate: float
    """Mean pass rate of the cases, a fraction."""
    checks_passed: float
    """Mean number of passed checks in a run."""
    checks: float
    """Mean number of checks in a run."""
    tokens: float | None
    """Mean tokens of a run, prompt and answer; None if a server did not count them."""
    cost_usd: float | None
    """Mean cost of a run in dollars; None if a price is unknown."""
    latency_s: float
    """Mean latency of a run in seconds."""


def figures(valid: Sequence[Sequence[RunResult]]) -> ArmFigures:
    """Return means over the valid runs of each case, averaged over the cases.

    Args:
        valid: Valid runs of each case, at least one each.
    """

    def average(of: Callable[[RunResult], float]) -> float:
        return fmean(fmean(of(run) for run in runs) for runs in valid)

    rates = [Fraction(sum(run.passed for run in runs), len(runs)) for runs in valid]
    completions = [run.completion for runs in valid for run in runs]
    counted = all(completion.tokens is not None for completion in completions)
    priced = all(completion.cost_usd is not None for completion in completions)
    return ArmFigures(
        runs=sum(map(len, valid)),
        passes=sum(run.passed for runs in valid for run in runs),
        # Exact: rounding must not put a rate of 0.7 below a threshold of 0.7.
        pass_rate=float(sum(rates) / len(rates)),
        checks_passed=average(lambda run: run.held),
        checks=average(lambda run: len(run.checks)),
        tokens=average(lambda run: run.completion.tokens or 0) if counted else None,
        cost_usd=average(lambda run: run.completion.cost_usd or 0) if priced else None,
        latency_s=average(lambda run: run.completion.latency_s),
    )


def token_ratio(without: ArmFigures | None, with_: ArmFigures | None) -> float | None:
    """Return mean tokens with the skill divided by those without, None if not counted."""
    if without is None or with_ is None or not without.tokens or not with_.tokens:
        return None
    return with_.tokens / without.tokens
