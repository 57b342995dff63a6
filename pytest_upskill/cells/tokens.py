"""Tokens of a cell's runs, and whether the skill saves more of them than it takes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from pytest_upskill import stats
from pytest_upskill.cells.pair import Pair
from pytest_upskill.trials.result import TrialResult


class ArmTokens(NamedTuple):
    """Tokens and passes of all valid runs in one arm."""

    tokens: float
    passes: int

    @property
    def per_pass(self) -> float | None:
        """Tokens of all runs per passed run; None if no run passed."""
        return stats.tokens_per_pass(self.tokens, self.passes)


class TokenUse(NamedTuple):
    """Tokens and passes in both arms, of the same cases."""

    with_skill: ArmTokens
    without_skill: ArmTokens

    @property
    def pays_for_itself(self) -> bool:
        """Whether a passed run takes fewer tokens with the skill."""
        return stats.pays_for_itself(
            tokens_with=self.with_skill.tokens,
            passes_with=self.with_skill.passes,
            tokens_without=self.without_skill.tokens,
            passes_without=self.without_skill.passes,
        )


def token_use(pairs: Sequence[Pair]) -> TokenUse:
    """Return tokens and passes in both arms of some cases."""
    return TokenUse(
        with_skill=_arm_tokens(pair.with_skill for pair in pairs),
        without_skill=_arm_tokens(pair.without_skill for pair in pairs),
    )


def token_ratio(pairs: Sequence[Pair]) -> stats.TokenRatio | None:
    """Return the ratio of tokens of a run, with the skill to without; None without data."""
    return stats.token_ratio(
        [(_run_tokens(pair.with_skill), _run_tokens(pair.without_skill)) for pair in pairs]
    )


def _arm_tokens(trials: Iterable[TrialResult]) -> ArmTokens:
    trials = list(trials)
    return ArmTokens(
        tokens=sum(sum(_run_tokens(trial)) for trial in trials),
        passes=sum(trial.passes for trial in trials),
    )


def _run_tokens(trial: TrialResult) -> list[float]:
    return [run.completion.tokens or 0 for run in trial.runs]
