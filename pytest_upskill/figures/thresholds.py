"""Thresholds of the gates, and what misses them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

if TYPE_CHECKING:
    from pytest_upskill.cases.skill import GateRule

FailOn = Literal["hurts", "regression", "no-effect", "too-few-runs", "uncalibrated", "cases"]
FAIL_ON: tuple[FailOn, ...] = get_args(FailOn)


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """Thresholds from the options; a case file can override the limits."""

    min_mean_pass_rate: float | None
    """Minimum mean pass rate of the cases with the skill, a fraction; None for none."""
    min_lift: float | None
    """Minimum lift, a fraction from -1 to 1; None for none."""
    fail_on: frozenset[FailOn]
    """Verdicts that fail the gate, and ``cases`` that were removed or changed since the ref."""
    min_recall: float | None = None
    """Minimum recall of triggers, a fraction; None for none."""
    max_false_triggers: float | None = None
    """Maximum rate of false triggers, a fraction; None for none."""

    def with_overrides(self, by: GateRule) -> Thresholds:
        """Return the thresholds with those that a case file sets in their place."""
        own = {limit.name: getattr(by, limit.name) for limit in fields(by)}
        return replace(self, **{name: value for name, value in own.items() if value is not None})


class Problem(NamedTuple):
    """A threshold that a cell misses, or could miss because of open runs."""

    text: str
    is_certain: bool
    """Whether the cell misses it whatever the results of the open runs."""


def misses(
    rate_if: Callable[[bool], float | None],
    limit: float | None,
    text: str,
    *,
    is_most: bool = False,
) -> Iterator[Problem]:
    """Yield the problem that a figure is beyond its limit, or could be because of open runs.

    Args:
        rate_if: Returns the figure if all open runs were for the skill, or against it.
        limit: The least allowed; None for none.
        text: The problem, with a place for the limit in percent.
        is_most: Whether the limit is the most allowed instead.
    """
    rates = [rate for rate in map(rate_if, (False, True)) if rate is not None]
    if limit is None or not rates:
        return
    beyond = [rate > limit if is_most else rate < limit for rate in rates]
    if any(beyond):
        yield Problem(text.format(100 * limit), is_certain=all(beyond))
