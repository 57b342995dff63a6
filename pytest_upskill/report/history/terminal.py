"""The history as lines for a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from pytest_upskill.cells.arm import ArmFigures
from pytest_upskill.cells.cell import Cell
from pytest_upskill.cells.wording import percent, points
from pytest_upskill.report.history.points import History, Point, Series

Metric = Literal["success", "tokens"]

_BAR = 20
"""Characters of a bar."""
BLOCKS = ("\N{FULL BLOCK}", "\N{LIGHT SHADE}")
"""Characters of a bar, full and empty."""
LEGEND = "lift: in points of 100, with its 95 % interval"
STAR = "*: with uncommitted changes"


def lines(history: History, metric: Metric, *, last: int, blocks: bool) -> Iterator[str]:
    """Yield the lines about each skill and model: the latest run as bars, and the runs over time.

    Args:
        history: The series to show.
        metric: What the bars show.
        last: Number of runs to list, the latest ones.
        blocks: Whether the terminal can show block characters.
    """
    title = None
    for series in history.series:
        if series.title != title:
            title = series.title
            yield from (f"skill: {title}", "")
        yield series.model
        yield from bars(series.last.cell, metric, blocks=blocks)
        yield ""
        yield from _table(series, metric, last)
        yield ""
    if history.series:
        yield LEGEND
    if any(p.commit.endswith("*") for series in history.series for p in series.points):
        yield STAR


def bars(cell: Cell, metric: Metric, *, blocks: bool) -> Iterator[str]:
    """Yield the published picture: a bar without the skill and one with it.

    Args:
        cell: A skill on a model.
        metric: What the bars show.
        blocks: Whether to draw with block characters instead of ASCII.
    """
    arms = {"baseline": cell.without_skill, "with skill": cell.with_skill}
    values = {name: _value(arm, metric) for name, arm in arms.items()}
    most = 1.0 if metric == "success" else max([0.0, *filter(None, values.values())])
    change = _change(values["baseline"], values["with skill"], metric)
    for name, value in values.items():
        end = f"  {change}" if name == "with skill" and change else ""
        yield f"  {name:10} {_bar(value, most, blocks)}  {_figure(value, metric):>4}{end}"


def _table(series: Series, metric: Metric, last: int) -> Iterator[str]:
    breaks = series.breaks
    shown = list(enumerate(series.points))[-last:]
    rows = [_row(point, metric) for _, point in shown]
    widths = [max(map(len, column)) for column in list(zip(*rows, strict=True))[:-1]]
    for (index, _), (*figures, verdict) in zip(shown, rows, strict=True):
        if why := breaks.get(index):
            yield f"  -- {why}"
        columns = zip(figures, widths, strict=True)
        padded = [text.ljust(width) for text, width in columns if width]
        yield f"  {'  '.join(padded)}  {verdict}"
    if hidden := len(series.points) - len(shown):
        yield f"  and {hidden} earlier: --last {len(series.points)} shows them"


def _row(point: Point, metric: Metric) -> tuple[str, str, str, str, str]:
    cell = point.cell
    values = (_value(arm, metric) for arm in (cell.without_skill, cell.with_skill))
    unit = "%" if metric == "success" else ""
    figures = "->".join(_figure(value, metric).removesuffix("%") for value in values) + unit
    return f"{point.date:%Y-%m-%d}", point.commit, figures, lift(cell), cell.verdict


def lift(cell: Cell) -> str:
    """Return a lift with its interval, ``+20 [-3,+41]``."""
    if cell.lift is None or cell.interval is None:
        return "n/a"
    low, high = cell.interval
    return f"{points(cell.lift)} [{points(low)},{points(high)}]"


def _value(arm: ArmFigures | None, metric: Metric) -> float | None:
    if arm is None:
        return None
    return arm.pass_rate if metric == "success" else arm.tokens


def _figure(value: float | None, metric: Metric) -> str:
    if value is None:
        return "n/a"
    return f"{percent(value)}%" if metric == "success" else f"{value:.0f}"


def _change(without: float | None, with_: float | None, metric: Metric) -> str:
    if without is None or with_ is None or (metric == "tokens" and not without):
        return ""
    change = with_ - without if metric == "success" else with_ / without - 1
    return f"({points(change)}%)"


def _bar(value: float | None, most: float, blocks: bool) -> str:
    full, empty = BLOCKS if blocks else ("#", ".")
    length = round(_BAR * value / most) if value and most else 0
    return full * length + empty * (_BAR - length)
