"""What a skill costs in tokens. Any other price of a run, such as dollars, works the same way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, inf, log, sqrt
from statistics import fmean, variance

from pytest_upskill.stats.numerics import student_t_quantile

_LARGEST_EXPONENT = 700

ArmTokens = tuple[Sequence[float], Sequence[float]]
"""Tokens of each valid run of one case: with the skill, without it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenRatio:
    """How many times the tokens a run takes with the skill; limits where there is an interval."""

    ratio: float
    low: float | None
    high: float | None


def token_ratio(pairs: Sequence[ArmTokens], level: float = 0.95) -> TokenRatio | None:
    """Estimate the ratio of tokens with and without the skill: a geometric mean over cases.

    ``exp(mean d)``, d a case's difference of mean log tokens. With two runs or more everywhere the
    interval is about these cases, by Welch and Satterthwaite (Welch 1947, Biometrika 34:28-35);
    else Student's t over the cases' differences.

    Args:
        pairs: Tokens of each valid run, per case and arm. Runs of 0 tokens, which are runs whose
            provider did not count, and cases with an empty arm are left out.
        level: Share of suites whose interval covers the true ratio.

    Returns:
        The ratio; its limits are None with a single run of a single case, and where nothing
        varies. None where no case has tokens in both arms.
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


def total_token_ratio(pairs: Sequence[ArmTokens]) -> float | None:
    """Give the ratio of mean tokens per run, with over without: what the bill sees.

    The skill pays for itself if the pass rate grows by more than this ratio. One minus it is
    the ``token_savings`` of huggingface/upskill.

    Args:
        pairs: Tokens of each valid run, per case and arm.

    Returns:
        The ratio, or None where an arm has no runs or the one without took no tokens.
    """
    with_ = [tokens for arm, _ in pairs for tokens in arm]
    without = [tokens for _, arm in pairs for tokens in arm]
    return fmean(with_) / fmean(without) if with_ and any(without) else None


def tokens_per_pass(tokens: float, passes: int) -> float | None:
    """Give what a pass costs in one arm: all its tokens over its passes, None without passes.

    Args:
        tokens: Tokens of all valid runs, also of those that failed.
        passes: Valid runs that passed.
    """
    return tokens / passes if passes else None


def pays_for_itself(
    *, tokens_with: float, passes_with: int, tokens_without: float, passes_without: int
) -> bool:
    """Tell whether a pass costs less with the skill than without.

    Args:
        tokens_with: Tokens of all valid runs with the skill.
        passes_with: How many of them passed.
        tokens_without: Tokens of all valid runs without it.
        passes_without: How many of them passed.
    """
    return tokens_with * passes_without < tokens_without * passes_with


def _logs(tokens: Sequence[float]) -> list[float]:
    return [log(count) for count in tokens if count > 0]


def _reach_of_runs(arms: Sequence[Sequence[float]], level: float) -> float | None:
    """Half the interval, from how runs of the same case and arm vary."""
    variances = [variance(arm) / len(arm) for arm in arms]
    total = sum(variances)
    if not total:
        return None
    df = total**2 / sum(v**2 / (len(arm) - 1) for v, arm in zip(variances, arms, strict=True))
    return student_t_quantile((1 + level) / 2, df) * sqrt(total) / (len(arms) / 2)


def _reach_of_cases(differences: Sequence[float], level: float) -> float | None:
    """Half the interval, from how the cases' differences vary."""
    cases = len(differences)
    if cases == 1:
        return None
    return student_t_quantile((1 + level) / 2, cases - 1) * sqrt(variance(differences) / cases)
