"""Coordinates of the charts, which the HTML template draws; lengths are in SVG units."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import floor, log10

from pytest_upskill.figures.arm import ArmFigures
from pytest_upskill.figures.gate import Gate
from pytest_upskill.figures.wording import percent
from pytest_upskill.stats import Interval, pass_rate_interval

WIDTH, HEIGHT = 460, 290
LEFT, RIGHT, TOP, BOTTOM = 54, 290, 16, 240
"""Area of the points; labels are to its right."""

BAR_WIDTH, BAR_HEIGHT = 200, 16

_LABEL_HEIGHT = 17

Tick = tuple[float, str]
"""A line across a chart and its text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dot:
    """One arm: x is the mean number of tokens of a run, y the pass rate."""

    x: float
    y: float
    low_y: float
    high_y: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrow:
    """An arrow of one model, from the arm without the skill to the arm with it."""

    label: str
    title: str
    color: int
    """Index of one of the six colors in the style sheet."""
    start: Dot
    end: Dot
    label_y: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Scatter:
    """Scatter plot of pass rate over tokens for the models that ran one skill."""

    arrows: tuple[Arrow, ...]
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]


def scatter(gates: Sequence[Gate]) -> Scatter | None:
    """Return the scatter plot of one skill's gates; None if the tokens of an arm are unknown."""
    measured = [
        (gate.cell.model, gate.lift.without_skill, gate.lift.with_skill)
        for gate in gates
        if gate.lift.without_skill and gate.lift.with_skill
    ]
    tokens = [arm.tokens for _, *arms in measured for arm in arms if arm.tokens]
    if len(tokens) < 2 * len(measured) or not measured:
        return None
    axis = _TokenAxis(low=log10(min(tokens) / 1.3), high=log10(max(tokens) * 1.3))
    label_heights = _move_apart([_rate_y(with_.pass_rate) for _, _, with_ in measured])
    return Scatter(
        arrows=tuple(
            Arrow(
                label=model,
                title=(
                    f"{model}: {percent(without.pass_rate)} % at {without.tokens:,.0f} tokens "
                    f"without the skill, {percent(with_.pass_rate)} % at {with_.tokens:,.0f} "
                    "with it"
                ),
                color=number % 6,
                start=_dot(without, axis),
                end=_dot(with_, axis),
                label_y=label_y,
            )
            for number, ((model, without, with_), label_y) in enumerate(
                zip(measured, label_heights, strict=True)
            )
        ),
        x_ticks=tuple((axis.x(n), f"{n:,}") for n in _round_counts(axis.low, axis.high)),
        y_ticks=tuple((_rate_y(n / 100), f"{n} %") for n in range(0, 101, 25)),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _TokenAxis:
    """The logarithmic horizontal axis, between two decimal logarithms of tokens."""

    low: float
    high: float

    def x(self, tokens: float) -> float:
        return LEFT + (RIGHT - LEFT) * (log10(tokens) - self.low) / (self.high - self.low)


def _dot(arm: ArmFigures, axis: _TokenAxis) -> Dot:
    interval = pass_rate_interval(arm.passes, arm.runs) or Interval(0, 1)
    return Dot(
        x=axis.x(arm.tokens or 1),
        y=_rate_y(arm.pass_rate),
        low_y=_rate_y(min(interval.low, arm.pass_rate)),
        high_y=_rate_y(max(interval.high, arm.pass_rate)),
    )


def bar_x(difference: float) -> float:
    """Return the place of a difference of pass rates on a bar from -100 to +100 points."""
    return BAR_WIDTH * (0.02 + 0.96 * (difference + 1) / 2)


def _rate_y(rate: float) -> float:
    return BOTTOM - (BOTTOM - TOP) * rate


def _move_apart(heights: Sequence[float]) -> list[float]:
    """Return positions of labels, moved apart so that they do not overlap, in the same order."""
    places = [0.0] * len(heights)
    floor_ = float(TOP)
    for index in sorted(range(len(heights)), key=lambda i: heights[i]):
        floor_ = places[index] = max(heights[index], floor_)
        floor_ += _LABEL_HEIGHT
    return places


def _round_counts(low: float, high: float) -> Iterator[int]:
    """Yield 1, 2 and 5 times the powers of ten between two decimal logarithms."""
    for power in range(floor(low), floor(high) + 1):
        for step in (1, 2, 5):
            if low <= log10(step) + power <= high and power >= 0:
                yield step * 10**power
