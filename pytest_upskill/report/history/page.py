"""The history as one static page without network access or scripts, and its charts."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil

from pytest_upskill.report.files.html import environment
from pytest_upskill.report.history.runs import History, Point, Series

WIDTH = 720
LEFT, RIGHT = 54, 684
_RATES = (24, 144)
"""Top and bottom of rates."""
_LIFTS = (180, 316)
"""Top and bottom of the lift."""
_LABELS = 6
"""Maximum number of runs that are named below the chart."""


def write_history_html(history: History) -> str:
    """Return the history as a page: a chart and a table for each skill on each model."""
    template = environment().get_template("history.html")
    return template.render(history=history, chart=chart, sides=(LEFT, RIGHT, WIDTH))


Tick = tuple[float, str]
"""A line across a chart and its text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dot:
    """A figure of a run, with its interval if it has one."""

    color: str
    y: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """One run."""

    x: float
    dots: Sequence[Dot]
    labels: Sequence[str]
    """Date and commit below the chart; empty for none."""
    worse: bool
    """Whether it shows a regression."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """Figures over the runs of a skill on a model."""

    bottom: int
    marks: Sequence[Mark]
    breaks: Sequence[Tick]
    """Lines between runs that cannot be compared, and why."""
    lines: Sequence[tuple[str, str]]
    """Color and points of the unbroken lines."""
    ticks: Sequence[Tick]


def chart(series: Series) -> Chart:
    """Return pass rates, with the lift below; or recall and false triggers.

    Lines are interrupted where a comparison would mislead.
    """
    bottom, ticks = _RATES[1], [(_rate_y(n / 100), f"{n} %") for n in (0, 50, 100)]
    if not series.last.chooses:
        bottom = _LIFTS[1]
        ticks += [(_lift_y(n / 100), f"{n:+d}" if n else "0") for n in (-100, -50, 0, 50, 100)]
    count = len(series.points)
    step = (RIGHT - LEFT) / count
    named = range(count - 1, -1, -ceil(count / _LABELS))
    marks = [
        Mark(
            x=LEFT + step * (index + 0.5),
            dots=list(_dots(point)),
            labels=(f"{point.run.date:%Y-%m-%d}", point.commit) if index in named else (),
            worse=series.is_worse(index),
        )
        for index, point in enumerate(series.points)
    ]
    breaks = series.breaks
    parts = [marks[start:end] for start, end in pairwise([0, *breaks, count])]
    return Chart(
        bottom=bottom,
        marks=marks,
        breaks=[(LEFT + step * index, why) for index, why in breaks.items()],
        lines=[line for part in parts for line in _lines(part)],
        ticks=ticks,
    )


def _lines(marks: Sequence[Mark]) -> Iterator[tuple[str, str]]:
    """Yield the lines of an unbroken part; runs without a figure are passed over."""
    for color in dict.fromkeys(dot.color for mark in marks for dot in mark.dots):
        dots = [(mark.x, dot.y) for mark in marks for dot in mark.dots if dot.color == color]
        if len(dots) > 1:
            yield color, " ".join(f"{x:.1f},{y:.1f}" for x, y in dots)


def _dots(point: Point) -> Iterator[Dot]:
    lift = "lift" if point.number("lift.corrected") is None else "lift.corrected"
    for name, color, place_of in (
        ("trigger.false_triggers", "c1", _rate_y),
        ("trigger.recall", "c2", _rate_y),
        ("pass_rate.without", "c1", _rate_y),
        ("pass_rate.with", "c2", _rate_y),
        (lift, "c0", _lift_y),
    ):
        value, *limits = (point.number(f"{name}{end}") for end in ("", ".low", ".high"))
        if value is not None:
            low, high = (None if limit is None else place_of(limit) for limit in limits)
            yield Dot(color=color, y=place_of(value), low=low, high=high)


def _rate_y(value: float) -> float:
    top, bottom = _RATES
    return bottom - (bottom - top) * value


def _lift_y(value: float) -> float:
    top, bottom = _LIFTS
    return bottom - (bottom - top) * (value + 1) / 2
