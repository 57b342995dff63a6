"""Figures of a comparison as a terminal shows them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from pytest_upskill.cells.wording import percent, points
from pytest_upskill.stats import CaseCounts, lift, lift_interval, verdict

_WIDTH = 20


def picture(
    cases: Sequence[CaseCounts], *, before: str, after: str, unicode: bool = True
) -> Iterator[str]:
    """Yield the lines ``baseline ████░░ 60%`` and ``with skill ███████ 95% (+35%)``, and the lift.

    Args:
        cases: Counts per case; *with* is what is shown second.
        before: What the first line is about.
        after: What the second line is about.
        unicode: Whether the terminal can show blocks.
    """
    estimate, interval = lift(cases), lift_interval(cases)
    if estimate is None or interval is None:
        return
    old = mean_rate([(case.passes_without, case.runs_without) for case in cases])
    new = mean_rate([(case.passes_with, case.runs_with) for case in cases])
    width = max(len(before), len(after))
    gain, low, high = map(points, (estimate, *interval))
    yield f"{before:{width}}  {_bar(old, unicode=unicode)} {percent(old):>3}%"
    yield f"{after:{width}}  {_bar(new, unicode=unicode)} {percent(new):>3}% ({gain}%)"
    yield f"lift {gain} points [{low}, {high}]: {verdict(cases)}"


def figures_of(
    confirmed: Mapping[str, Sequence[CaseCounts]], before: str, after: str, *, unicode: bool
) -> Iterator[str]:
    """Yield the picture of every student.

    Args:
        confirmed: Counts of the held-out cases by student.
        before: What *without* is.
        after: What *with* is.
        unicode: Whether the terminal can show blocks.
    """
    for student, counts in confirmed.items():
        yield f"{student}, held-out cases, fresh runs:"
        for line in picture(counts, before=before, after=after, unicode=unicode):
            yield f"  {line}"


def mean_rate(pairs: Sequence[tuple[int, int]]) -> float:
    """Return the mean pass rate over cases, given as passes and runs."""
    rates = [passes / runs for passes, runs in pairs if runs]
    return sum(rates) / len(rates) if rates else 0.0


def _bar(rate: float, *, unicode: bool) -> str:
    full, empty = ("█", "░") if unicode else ("#", ".")
    blocks = round(rate * _WIDTH)
    return full * blocks + empty * (_WIDTH - blocks)
