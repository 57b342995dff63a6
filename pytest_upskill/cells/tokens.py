"""What a passed run takes in each arm of a cell, in tokens and dollars."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pytest_upskill.cells.pair import Pair
from pytest_upskill.trials.result import RunResult, TrialResult


@dataclass(frozen=True, slots=True)
class PerPass:
    """An amount that all runs of an arm took, for each that passed."""

    without_skill: float | None
    """None if no run passed."""
    with_skill: float | None


def tokens_per_pass(pairs: Sequence[Pair]) -> PerPass | None:
    """Return the tokens of a passed run, failed runs included; None if some are not counted."""
    return _per_pass(pairs, lambda run: run.completion.tokens)


def dollars_per_pass(pairs: Sequence[Pair]) -> PerPass | None:
    """Return the dollars of a passed run, failed runs included; None if a price is unknown."""
    return _per_pass(pairs, lambda run: run.completion.cost_usd)


def _per_pass(
    pairs: Sequence[Pair], amount_of: Callable[[RunResult], float | None]
) -> PerPass | None:
    arms = [pair.without_skill for pair in pairs], [pair.with_skill for pair in pairs]
    totals = [[amount_of(run) for trial in arm for run in trial.runs] for arm in arms]
    if any(amount is None for amounts in totals for amount in amounts):
        return None
    sums = [sum(amount or 0 for amount in amounts) for amounts in totals]
    return PerPass(*(_divide(total, arm) for total, arm in zip(sums, arms, strict=True)))


def _divide(total: float, trials: Sequence[TrialResult]) -> float | None:
    passes = sum(trial.passes for trial in trials)
    return total / passes if passes else None
