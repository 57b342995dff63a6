"""The history as lines for a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from pytest_upskill.figures.arm import ArmFigures
from pytest_upskill.figures.figure import columns_of
from pytest_upskill.figures.gate import Gate
from pytest_upskill.figures.wording import percent, points
from pytest_upskill.report.history.runs import History, Point, Series

Metric = Literal["success", "tokens"]

_BAR = 20
"""Characters of a bar."""
_BRANCH = 14
"""Most characters of a branch."""
BLOCKS = ("\N{FULL BLOCK}", "\N{LIGHT SHADE}")
"""Characters of a bar, full and empty."""
LEGEND = "lift: in percentage points, with its 95 % interval"
TRIGGER_LEGEND = (
    "recall: percent of the queries that should trigger the skill,",
    "false: of those that should not; with 95 % intervals",
)
STAR = "*: with uncommitted changes"


def lines(history: History, metric: Metric, *, last: int, blocks: bool) -> Iterator[str]:
    """Yield the lines about each skill and model: the latest run as bars, and the runs over time.

    Args:
        history: The series to show.
        metric: What the bars of a lift show.
        last: Number of runs to list, the latest ones.
        blocks: Whether the terminal can show block characters.
    """
    title = model = None
    for series in history.series:
        if series.title != title:
            title, model = series.title, None
            yield from (f"skill: {title}", "")
        if series.model != model:
            model = series.model
            yield model
        yield from _bars(series.last.gate, metric, blocks=blocks)
        yield ""
        yield from _table(series, last, metric)
        yield ""
    measures = {series.last.gate.cell.chooses for series in history.series}
    if False in measures:
        yield LEGEND
    if True in measures:
        yield from TRIGGER_LEGEND
    if any(point.commit.endswith("*") for series in history.series for point in series.points):
        yield STAR


def _bars(gate: Gate, metric: Metric, *, blocks: bool) -> Iterator[str]:
    """Yield the published picture: a bar without the skill and one with it; or two rates."""
    if gate.cell.chooses:
        metric, change = "success", ""
        rates = {"recall": gate.triggers.recall, "false": gate.triggers.false_triggers}
        values = {name: each.estimate if each else None for name, each in rates.items()}
    else:
        lift = gate.lift
        arms = {"baseline": lift.without_skill, "with skill": lift.with_skill}
        values = {name: _value(arm, metric) for name, arm in arms.items()}
        change = _change(values["baseline"], values["with skill"], metric)
        if change and lift.correction and metric == "success":
            change = f"({points(lift.correction.lift)}%, judged {change[1:-1]})"
    most = 1.0 if metric == "success" else max([0.0, *filter(None, values.values())])
    for name, value in values.items():
        end = f"  {change}" if name == "with skill" and change else ""
        yield f"  {name:10} {bar(value, most, blocks)}  {_figure(value, metric):>4}{end}"


def _table(series: Series, last: int, metric: Metric) -> Iterator[str]:
    breaks = series.breaks
    shown = list(enumerate(series.points))[-last:]
    several = len({point.branch for point in series.points if point.branch}) > 1
    rows = [(*_when(point, several), *_figures(point.gate, metric)) for _, point in shown]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for (index, _), row in zip(shown, rows, strict=True):
        if why := breaks.get(index):
            yield f"  -- {why}"
        columns = zip(row, widths, strict=True)
        padded = [text.ljust(width) for text, width in columns if width]
        yield f"  {'  '.join(padded)}".rstrip()
    if hidden := len(series.points) - len(shown):
        yield f"  and {hidden} earlier: --last {len(series.points)} shows them"


def _when(point: Point, several: bool) -> tuple[str, str, str]:
    """Return date, commit, and the branch where there are several."""
    branch = point.branch if several else ""
    return (
        f"{point.date:%Y-%m-%d}",
        point.commit,
        branch if len(branch) <= _BRANCH else f"{branch[: _BRANCH - 3]}...",
    )


def _figures(gate: Gate, metric: Metric) -> tuple[str, ...]:
    columns = columns_of(gate)
    if gate.cell.chooses:
        return f"recall {columns['recall [95 %]']}", f"false {columns['false triggers']}"
    means = columns["pass rate" if metric == "success" else "tokens"]
    return means, columns["lift [95 %]"], gate.verdict


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


def bar(value: float | None, most: float, blocks: bool) -> str:
    """Return a bar as long as a value is of the most; empty without a value."""
    full, empty = BLOCKS if blocks else ("#", ".")
    length = round(_BAR * value / most) if value and most else 0
    return full * length + empty * (_BAR - length)
