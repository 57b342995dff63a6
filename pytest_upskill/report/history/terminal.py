"""The history as lines for a terminal, and as CSV."""

import csv
import io
from collections.abc import Iterator, Sequence
from typing import Literal

from pytest_upskill.figures.presentation import Scalar
from pytest_upskill.figures.wording import percent, points
from pytest_upskill.project.messages import not_a_formula
from pytest_upskill.report.history.runs import History, Point, Series
from pytest_upskill.report.terminal import LEGEND, TRIGGER_LEGEND

Metric = Literal["success", "tokens"]

_BAR = 20
"""Characters of a bar."""
_LEGENDS = {False: LEGEND, True: TRIGGER_LEGEND}
"""What the columns mean, by whether they are about the choice of a skill."""
WORSE = "WORSE"
"""Marks a run that is worse than the one before, or that its gate has called so."""


def lines(history: History, metric: Metric, *, last: int, blocks: bool) -> Iterator[str]:
    """Yield a matrix of skills and models, then the latest run of each as bars, and all runs.

    Args:
        history: The series to show.
        metric: What the bars of a lift show.
        last: Number of runs to list, the latest ones.
        blocks: Whether the terminal can show block characters.
    """
    yield from _matrix(history.series)
    for series in history.series:
        yield from (f"skill: {series.title}", "", series.last.cell.model)
        yield from _bars(series.last, metric, blocks=blocks)
        yield ""
        yield from _table(series, last, metric)
        yield ""
    measures = {series.last.chooses for series in history.series}
    yield from (legend for chooses, legend in _LEGENDS.items() if chooses in measures)
    if any(point.commit.endswith("*") for series in history.series for point in series.points):
        yield "*: with uncommitted changes"


def _matrix(series: Sequence[Series]) -> Iterator[str]:
    """Yield the latest lift of each skill on each model, its change, and the cost of a run."""
    lifts = [each for each in series if not each.last.chooses]
    models = list(dict.fromkeys(each.last.cell.model for each in lifts))
    cells = {(each.title, each.last.cell.model): _summary(each) for each in lifts}
    if len(cells) > 1:
        titles = dict.fromkeys(each.title for each in lifts)
        rows = ([title, *(cells.get((title, model), "") for model in models)] for title in titles)
        yield from _aligned([["lift (change) cost", *models], *rows])
        yield ""


def _summary(series: Series) -> str:
    """Return ``+20 (-3) $0.0012``, and WORSE after a regression."""
    lift = series.last.lift
    change = "" if series.change is None else f"({points(series.change)})"
    worse = WORSE if series.is_worse(len(series.points) - 1) else ""
    shown = "n/a" if lift is None else points(lift)
    return " ".join(filter(None, (shown, change, series.last.cost, worse)))


def _bars(point: Point, metric: Metric, *, blocks: bool) -> Iterator[str]:
    """Yield the published picture: a bar without the skill and one with it; or two rates."""
    figure = "tokens" if metric == "tokens" else "pass_rate"
    names = {"baseline": f"{figure}.without", "with skill": f"{figure}.with"}
    if point.chooses:
        names = {"recall": "trigger.recall", "false": "trigger.false_triggers"}
    values = {name: point.number(figure) for name, figure in names.items()}
    are_tokens = metric == "tokens" and not point.chooses
    most = max([0.0, *filter(None, values.values())]) if are_tokens else 1.0
    change, ratio = point.lift, point.number("tokens.ratio")
    ends = {"with skill": "" if change is None else f"  ({points(change)}%)"}
    if are_tokens:
        ends = {"with skill": "" if ratio is None else f"  (x{ratio:.2f})"}
    for name, value in values.items():
        text = "n/a" if value is None else f"{value:.0f}" if are_tokens else f"{percent(value)}%"
        yield f"  {name:10} {bar(value, most, blocks)}  {text:>4}{ends.get(name, '')}"


def _table(series: Series, last: int, metric: Metric) -> Iterator[str]:
    """Yield a line for each of the latest runs, after one that says why it is not comparable."""
    heads = ["tokens" if metric == "tokens" else "pass rate", "lift [95 %]", "verdict"]
    if series.last.chooses:
        heads = ["recall [95 %]", "false triggers"]
    first = max(0, len(series.points) - last)
    several = len({point.revision.branch for point in series.points if point.revision.branch}) > 1
    rows = [
        (
            f"{point.run.date:%Y-%m-%d %H:%M}",
            point.commit,
            point.revision.branch if several else "",
            *(point.columns[head] for head in heads),
            WORSE if series.is_worse(index) else "",
        )
        for index, point in enumerate(series.points[first:], first)
    ]
    head, *shown = _aligned([("date", "commit", "branch", *heads, ""), *rows])
    yield f"  {head}"
    for index, line in enumerate(shown, first):
        if why := series.breaks.get(index):
            yield f"  -- {why}"
        yield f"  {line}"
    if first:
        yield f"  and {first} earlier: --last {len(series.points)} shows them"


def _aligned(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield a head and rows, with their columns below each other, without empty columns."""
    columns = zip(*rows, strict=True)
    widths = [max(map(len, column)) if any(column[1:]) else 0 for column in columns]
    for row in rows:
        padded = (text.ljust(width) for text, width in zip(row, widths, strict=True) if width)
        yield "  ".join(padded).rstrip()


def bar(value: float | None, most: float, blocks: bool) -> str:
    """Return a bar as long as a value is of the most; empty without a value."""
    full, empty = ("\N{FULL BLOCK}", "\N{LIGHT SHADE}") if blocks else ("#", ".")
    length = round(_BAR * value / most) if value and most else 0
    return full * length + empty * (_BAR - length)


def write_csv(history: History) -> str:
    """Return the history as CSV with a head; rates and lifts are fractions, costs dollars.

    A row has the figures of one kind: the lift, or how often the skill was chosen.
    """
    rows = [
        _row(point, series.breaks.get(index, ""))
        for series in history.series
        for index, point in enumerate(series.points)
    ]
    columns = dict.fromkeys(name for row in rows for name in row)
    stream = io.StringIO()
    writer = csv.DictWriter(
        stream, fieldnames=list(columns), lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC
    )
    writer.writeheader()
    writer.writerows(rows)
    return stream.getvalue()


def _row(point: Point, why_break: str) -> dict[str, Scalar]:
    """Return what a point is about, where it is from, and its figures."""
    row = {
        "date": f"{point.run.date:%Y-%m-%dT%H:%M:%SZ}",
        "commit": point.revision.commit,
        "branch": point.revision.branch,
        "dirty": point.revision.dirty,
        "command": point.run.command,
        "file": point.file,
        "skill": point.cell.skill,
        "path": point.cell.path,
        "model": point.cell.model,
        "resolved": point.cell.resolved,
        "served": point.cell.served,
        "break": why_break,
        **{name.replace(".", "_"): value for name, value in point.figures.items()},
    }
    return {
        name: not_a_formula(value) if isinstance(value, str) else value
        for name, value in row.items()
    }
