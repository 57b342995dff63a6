"""Coordinates of the chart of a series, which the HTML template draws; lengths in SVG units."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from pytest_upskill.figures.cell import Cell
from pytest_upskill.figures.trigger_cell import Rate, TriggerCell
from pytest_upskill.figures.wording import lift, percent
from pytest_upskill.report.files.charts import Tick
from pytest_upskill.report.history.points import Group, Point, Series
from pytest_upskill.report.history.terminal import rate

WIDTH = 720
LEFT, RIGHT = 54, 684
_RATES = (24, 144)
"""Top and bottom of rates."""
_LIFTS = (180, 316)
"""Top and bottom of the lift."""
_FOOT = 40
"""Height of the part below the lowest line."""
_RADIUS = 3.5
"""Of a dot where there is room."""
_LABELS = 9
"""Maximum number of commits below the chart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dot:
    """A figure of a run, with its interval if it has one."""

    color: str
    hollow: bool = False
    y: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """One run."""

    x: float
    title: str
    dots: Sequence[Dot]
    label: str
    """Commit or date below the chart; "" for none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A line through figures of one kind, unbroken."""

    color: str
    points: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """Figures over the runs of a skill on a model."""

    bottom: int
    height: int
    radius: float
    """Of dots: many runs need small ones."""
    marks: Sequence[Mark]
    breaks: Sequence[Tick]
    """Lines between runs that cannot be compared, and why."""
    lines: Sequence[Line]
    ticks: Sequence[Tick]


def chart(series: Series[Cell]) -> Chart:
    """Return pass rates above, and the lift with its interval below."""
    signed = [(_lift_y(n / 100), f"{n:+d}" if n else "0") for n in (-100, -50, 0, 50, 100)]
    return _chart(series, _dots, _describe, bottom=_LIFTS[1], ticks=[*_rate_ticks(), *signed])


def trigger_chart(series: Series[TriggerCell]) -> Chart:
    """Return recall and false triggers with their intervals."""
    return _chart(series, _trigger_dots, _describe_triggers, bottom=_RATES[1], ticks=_rate_ticks())


def _chart(
    series: Series[Group],
    dots_of: Callable[[Group], Iterator[Dot]],
    description_of: Callable[[Group], str],
    *,
    bottom: int,
    ticks: Sequence[Tick],
) -> Chart:
    """Return a chart; lines are interrupted where a comparison would mislead."""
    count = len(series.points)
    step = (RIGHT - LEFT) / count
    every = -(-count // _LABELS)
    marks = [
        Mark(
            x=LEFT + step * (index + 0.5),
            title=f"{_when(point)}: {description_of(point.cell)}",
            dots=list(dots_of(point.cell)),
            label="" if (count - 1 - index) % every else point.commit or f"{point.date:%m-%d}",
        )
        for index, point in enumerate(series.points)
    ]
    breaks = series.breaks
    parts = [marks[start:end] for start, end in pairwise([0, *breaks, count])]
    return Chart(
        bottom=bottom,
        height=bottom + _FOOT,
        radius=max(1.0, min(_RADIUS, step / 3)),
        marks=marks,
        breaks=[(LEFT + step * index, why) for index, why in breaks.items()],
        lines=[line for part in parts for line in _lines(part)],
        ticks=ticks,
    )


def _lines(marks: Sequence[Mark]) -> Iterator[Line]:
    """Yield the lines of an unbroken part; runs without a figure are passed over."""
    for color in dict.fromkeys(dot.color for mark in marks for dot in mark.dots):
        dots = [(mark.x, dot.y) for mark in marks for dot in mark.dots if dot.color == color]
        if len(dots) > 1:
            yield Line(color=color, points=" ".join(f"{x:.1f},{y:.1f}" for x, y in dots))


def _dots(cell: Cell) -> Iterator[Dot]:
    if without := cell.without_skill:
        yield Dot(color="c1", hollow=True, y=_rate_y(without.pass_rate))
    if with_ := cell.with_skill:
        yield Dot(color="c2", y=_rate_y(with_.pass_rate))
    if deciding := cell.deciding_lift:
        y, low, high = map(_lift_y, (deciding.estimate, deciding.low, deciding.high))
        yield Dot(color="c0", y=y, low=low, high=high)


def _trigger_dots(cell: TriggerCell) -> Iterator[Dot]:
    if false := cell.false_triggers:
        yield _rate_dot(false, "c1", hollow=True)
    if recall := cell.recall:
        yield _rate_dot(recall, "c2")


def _rate_dot(value: Rate, color: str, *, hollow: bool = False) -> Dot:
    y, low, high = map(_rate_y, (value.estimate, value.low, value.high))
    return Dot(color=color, hollow=hollow, y=y, low=low, high=high)


def _when(point: Point[Group]) -> str:
    where = "".join(f", {each}" for each in (point.commit, point.branch) if each)
    return f"{point.date:%Y-%m-%d %H:%M} UTC{where}"


def _describe(cell: Cell) -> str:
    with_, without = (
        "n/a" if arm is None else f"{percent(arm.pass_rate)} %"
        for arm in (cell.with_skill, cell.without_skill)
    )
    return f"{without} without, {with_} with the skill, lift {lift(cell)}, {cell.verdict}"


def _describe_triggers(cell: TriggerCell) -> str:
    return f"recall {rate(cell.recall)}, false triggers {rate(cell.false_triggers)}"


def _rate_ticks() -> list[Tick]:
    return [(_rate_y(n / 100), f"{n} %") for n in (0, 50, 100)]


def _rate_y(value: float) -> float:
    top, bottom = _RATES
    return bottom - (bottom - top) * value


def _lift_y(value: float) -> float:
    top, bottom = _LIFTS
    return bottom - (bottom - top) * (value + 1) / 2
