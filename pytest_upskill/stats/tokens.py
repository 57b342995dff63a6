"""The cost of a skill in tokens. Other costs of a run, such as dollars, work the same way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, inf, log, sqrt
from statistics import fmean, variance

from pytest_upskill.stats.numerics import student_t_quantile

_LARGEST_EXPONENT = 700

CaseTokens = tuple[Sequence[float], Sequence[float]]
"""Tokens of each valid run of a case, first with the skill, then without it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenRatio:
    """The tokens with the skill divided by those without, and its interval if there is one."""

    ratio: float
    low: float | None
    high: float | None


def token_ratio(pairs: Sequence[CaseTokens], level: float = 0.95) -> TokenRatio | None:
    """Estimate the ratio of tokens with and without the skill, as a geometric mean over cases.

    It is ``exp(mean d)``, where d is a case's difference of mean log tokens. If every arm of every
    case has two runs or more, the interval is about these cases, by Welch and Satterthwaite (Welch
    1947, Biometrika 34:28-35); otherwise it is Student's t interval over the cases' differences.

    Args:
        pairs: Tokens of each valid run, per case and arm. Runs with 0 tokens, which the provider
            did not count, and cases with an empty arm are left out.
        level: Confidence level, from 0 to 1.

    Returns:
        The ratio, or None if no case has tokens in both arms. Its limits are None for a single run
        of a single case, or without any variance.
    """
    logs = [(_logs(with_), _logs(without)) for with_, without in pairs]
    logs = [(with_, without) for with_, without in logs if with_ and without]
    if not logs:
        return None
    differences = [fmean(with_) - fmean(without) for with_, without in logs]
    arms = [arm for pair in logs for arm in pair]
    mean = fmean(differences)
    reach = (
        _reach_of_runs(arms, level)
        if all(len(arm) > 1 for arm in arms)
        else _reach_of_cases(differences, level)
    )
    if not reach:
        return TokenRatio(ratio=exp(mean), low=None, high=None)
    high = exp(mean + reach) if mean + reach < _LARGEST_EXPONENT else inf
    return TokenRatio(ratio=exp(mean), low=exp(mean - reach), high=high)


def total_token_ratio(pairs: Sequence[CaseTokens]) -> float | None:
    """Return the mean tokens per run with the skill, divided by those without.

    It is the ratio of the total bills. The skill pays for itself if the ratio of pass rates is
    larger. One minus it is the ``token_savings`` of huggingface/upskill.

    Args:
        pairs: Tokens of each valid run, per case and arm.

    Returns:
        The ratio, or None if an arm has no runs, or the one without the skill has no tokens.
    """
    with_ = [tokens for arm, _ in pairs for tokens in arm]
    without = [tokens for _, arm in pairs for tokens in arm]
    return fmean(with_) / fmean(without) if with_ and any(without) else None


def tokens_per_pass(tokens: float, passes: int) -> float | None:
    """Return the tokens per passed run in one arm, None without passes.

    Args:
        tokens: Tokens of all valid runs, including failed ones.
        passes: Number of valid runs that passed.
    """
    return tokens / passes if passes else None


def pays_for_itself(
    *, tokens_with: float, passes_with: int, tokens_without: float, passes_without: int
) -> bool:
    """Return whether a passed run costs fewer tokens with the skill than without.

    Args:
        tokens_with: Tokens of all valid runs with the skill.
        passes_with: Number of these runs that passed.
        tokens_without: Tokens of all valid runs without it.
        passes_without: Number of these runs that passed.
    """
    return tokens_with * passes_without < tokens_without * passes_with


def _logs(tokens: Sequence[float]) -> list[float]:
    return [log(count) for count in tokens if count > 0]


def _reach_of_runs(arms: Sequence[Sequence[float]], level: float) -> float | None:
    """Return half the width of the interval, by the variance of runs within cases and arms."""
    variances = [variance(arm) / len(arm) for arm in arms]
    total = sum(variances)
    if not total:
        return None
    df = total**2 / sum(v**2 / (len(arm) - 1) for v, arm in zip(variances, arms, strict=True))
    return student_t_quantile((1 + level) / 2, df) * sqrt(total) / (len(arms) / 2)


def _reach_of_cases(differences: Sequence[float], level: float) -> float | None:
    """Return half the width of the interval, by the variance of the cases' differences."""
    cases = len(differences)
    if cases == 1:
        return None
    return student_t_quantile((1 + level) / 2, cases - 1) * sqrt(variance(differences) / cases)
