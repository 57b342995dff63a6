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
    # There are cases, and a missing run would have stopped the command.
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
    counts: Mapping[str, Sequence[CaseCounts]], before: str, after: str, *, blocks: bool
) -> Iterator[str]:
    """Yield ``baseline ████░░ 60%``, ``with skill ███████ 95% (+35%)`` and the lift by student.

    Args:
        counts: Counts of the held-out cases by student.
        before: Name of the *without* side.
        after: Name of the *with* side.
        blocks: Whether the output can show block characters.
    """
    width = max(len(before), len(after))
    for student, cases in counts.items():
        yield f"{student}, held-out cases, fresh runs:"
        figures = figures_of(cases)
        gain, interval = points(figures["lift"]), Interval(figures["low"], figures["high"])
        for name, rate, change in (
            (before, figures["before"], ""),
            (after, figures["after"], f" ({gain}%)"),
        ):
            yield f"  {name:{width}}  {bar(rate, 1.0, blocks)} {percent(rate):>3}%{change}"
        yield f"  lift {gain} points {bounds(interval)}: {verdict(cases)}"
