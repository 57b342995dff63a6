"""Figures of a comparison, as a terminal shows them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean

from pytest_upskill.cells.wording import bounds, percent, points
from pytest_upskill.report.history.terminal import bar
from pytest_upskill.stats import CaseCounts, Interval, lift, lift_interval, verdict


def figures_of(cases: Sequence[CaseCounts]) -> dict[str, float]:
    """Return mean pass rates before and after, the lift and its interval, as JSON."""
    estimate, interval = lift(cases), lift_interval(cases)
    # A missing run has stopped the command.
    assert estimate is not None
    assert interval is not None
    return {
        "before": fmean(case.passes_without / case.runs_without for case in cases),
        "after": fmean(case.passes_with / case.runs_with for case in cases),
        "lift": estimate,
        "low": interval.low,
        "high": interval.high,
    }


def comparison_lines(
    confirmed: Mapping[str, Sequence[CaseCounts]], before: str, after: str, *, unicode: bool
) -> Iterator[str]:
    """Yield ``baseline ████░░ 60%``, ``with skill ███████ 95% (+35%)`` and the lift by student.

    Args:
        confirmed: Counts of the held-out cases by student.
        before: What *without* is.
        after: What *with* is.
        unicode: Whether the terminal can show blocks.
    """
    width = max(len(before), len(after))
    for student, cases in confirmed.items():
        yield f"{student}, held-out cases, fresh runs:"
        figures = figures_of(cases)
        gain, interval = points(figures["lift"]), Interval(figures["low"], figures["high"])
        for what, rate, more in (
            (before, figures["before"], ""),
            (after, figures["after"], f" ({gain}%)"),
        ):
            yield f"  {what:{width}}  {bar(rate, 1.0, unicode)} {percent(rate):>3}%{more}"
        yield f"  lift {gain} points {bounds(interval)}: {verdict(cases)}"
