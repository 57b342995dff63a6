"""Coordinates of the chart of a series, which the HTML template draws; lengths in SVG units."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from pytest_upskill.cells.cell import Cell
from pytest_upskill.cells.wording import percent
from pytest_upskill.report.history.points import Point, Series
from pytest_upskill.report.history.terminal import lift

WIDTH, HEIGHT = 720, 356
LEFT, RIGHT = 54, 684
RATES = (24, 144)
"""Top and bottom of the pass rates."""
LIFTS = (180, 316)
"""Top and bottom of the lift."""
_LABELS = 9
"""Maximum number of commits below the chart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """One run."""

    x: float
    title: str
    with_y: float | None
    without_y: float | None
    lift_y: float | None
    low_y: float | None
    high_y: float | None
    label: str
    """Commit or date below the chart; "" for none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Break:
    """A line between runs that cannot be compared."""

    x: float
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """Pass rates above, lift with its interval below, over the runs of a skill on a model."""

    marks: tuple[Mark, ...]
    breaks: tuple[Break, ...]
    with_lines: tuple[str, ...]
    """Points of each unbroken line of the pass rate with the skill."""
    without_lines: tuple[str, ...]
    lift_lines: tuple[str, ...]
    rate_ticks: tuple[tuple[float, str], ...]
    lift_ticks: tuple[tuple[float, str], ...]


def chart(series: Series) -> Chart:
    """Return the chart of a series; lines are interrupted where a comparison would mislead."""
    count = len(series.points)
    step = (RIGHT - LEFT) / count
    every = -(-count // _LABELS)
    marks = tuple(
        _mark(point, LEFT + step * (index + 0.5), label=(count - 1 - index) % every == 0)
        for index, point in enumerate(series.points)
    )
    breaks = series.breaks
    starts = [0, *breaks, count]
    parts = [marks[start:end] for start, end in pairwise(starts)]
    return Chart(
        marks=marks,
        breaks=tuple(Break(x=LEFT + step * index, why=why) for index, why in breaks.items()),
        with_lines=_lines([[(mark.x, mark.with_y) for mark in part] for part in parts]),
        without_lines=_lines([[(mark.x, mark.without_y) for mark in part] for part in parts]),
        lift_lines=_lines([[(mark.x, mark.lift_y) for mark in part] for part in parts]),
        rate_ticks=tuple((_rate_y(n / 100), f"{n} %") for n in (0, 50, 100)),
        lift_ticks=tuple(
            (_lift_y(n / 100), f"{n:+d}" if n else "0") for n in (-100, -50, 0, 50, 100)
        ),
    )


def _mark(point: Point, x: float, *, label: bool) -> Mark:
    cell = point.cell
    one, other = cell.with_skill, cell.without_skill
    known = cell.lift is not None and cell.interval is not None
    return Mark(
        x=x,
        title=_title(point),
        with_y=None if one is None else _rate_y(one.pass_rate),
        without_y=None if other is None else _rate_y(other.pass_rate),
        lift_y=_lift_y(cell.lift) if known and cell.lift is not None else None,
        low_y=_lift_y(cell.interval.low) if known and cell.interval else None,
        high_y=_lift_y(cell.interval.high) if known and cell.interval else None,
        label=(point.commit or f"{point.date:%m-%d}") if label else "",
    )


def _title(point: Point) -> str:
    at = f"{point.date:%Y-%m-%d %H:%M} UTC"
    where = f", {point.commit}" if point.commit else ""
    return f"{at}{where}: {_rates(point.cell)}, lift {lift(point.cell)}, {point.cell.verdict}"


def _rates(cell: Cell) -> str:
    one, other = (
        "n/a" if arm is None else f"{percent(arm.pass_rate)} %"
        for arm in (cell.with_skill, cell.without_skill)
    )
    return f"{other} without, {one} with the skill"


def _lines(parts: Sequence[Sequence[tuple[float, float | None]]]) -> tuple[str, ...]:
    """Return the points of polylines; runs without a figure are passed over."""
    known = [[(x, y) for x, y in part if y is not None] for part in parts]
    return tuple(" ".join(f"{x:.1f},{y:.1f}" for x, y in part) for part in known if len(part) > 1)


def _rate_y(rate: float) -> float:
    top, bottom = RATES
    return bottom - (bottom - top) * rate


def _lift_y(value: float) -> float:
    top, bottom = LIFTS
    return bottom - (bottom - top) * (value + 1) / 2
