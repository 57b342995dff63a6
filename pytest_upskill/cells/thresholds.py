"""What the cells of a run are held against."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

FailOn = Literal["hurts", "regression", "no-effect", "too-few-runs"]
FAIL_ON: tuple[FailOn, ...] = get_args(FailOn)


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """Where a case file says nothing else: the least rates, and what is red whatever they are."""

    min_pass_rate: float | None
    """Least pass rate with the skill."""
    min_lift: float | None
    """Least pass rate with the skill minus without."""
    fail_on: frozenset[FailOn]
    """What makes a cell red."""


def fraction(value: float, *, low: float) -> float:
    """Take a fraction from ``low`` to 1.

    Raises:
        ValueError: It is none; one line, to follow the name of an option.
    """
    if not low <= value <= 1:
        raise ValueError(f"must be between {low:g} and 1, got {value:g}: write 0.2 for 20 %")
    return float(value)
