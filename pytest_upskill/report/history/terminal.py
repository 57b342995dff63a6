"""The history as lines for a terminal, and as CSV."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from pytest_upskill.figures.figure import Scalar
from pytest_upskill.figures.wording import money, percent, points
from pytest_upskill.project.messages import safe_line
from pytest_upskill.report.history.runs import History, Point, Series

Metric = Literal["success", "tokens"]

_BAR = 20
"""Characters of a bar."""
_BRANCH = 14
"""Most characters of a branch."""
_BLOCKS = ("\N{FULL BLOCK}", "\N{LIGHT SHADE}")
"""Characters of a bar, full and empty."""
LEGEND = "lift: in percentage points, with its 95 % interval"
TRIGGER_LEGEND = (
    "recall: percent of the queries that should trigger the skill,",
    "false: of those that should not; with 95 % intervals",
)
WORSE = "WORSE"
"""Marks a run that is worse than the one before, or that its gate has called so."""
STAR = "*: with uncommitted changes"
_FORMULA = re.compile(r"(^|[;,\t])(?=\s*[=+@-])")
"""Before what a spreadsheet would calculate, also if it separates fields by semicolons."""


def lines(history: History, metric: Metric, *, last: int, blocks: bool) -> Iterator[str]:
    """Yield a matrix of skills and models, then the latest run of each as bars, and all runs.

    Args:
        history: The series to show.
        metric: What the bars of a lift show.
        last: Number of runs to list, the latest ones.
        blocks: Whether the terminal can show block characters.
    """
    yield from _matrix(history.series)
    title = model = None
    for series in history.series:
        if series.title != title:
            title, model = series.title, None
            yield from (f"skill: {title}", "")
        if series.model != model:
            model = series.model
            yield model
        yield from _bars(series.last, metric, blocks=blocks)
        yield ""
        yield from _table(series, last, metric)
        yield ""
    measures = {series.last.chooses for series in history.series}
    if False in measures:
        yield LEGEND
    if True in measures:
        yield from TRIGGER_LEGEND
    if any(point.commit.endswith("*") for series in history.series for point in series.points):
        yield STAR


def _matrix(series: Sequence[Series]) -> Iterator[str]:
    """Yield the latest lift of each skill on each model, its change, and the cost of a run."""
    lifts = [each for each in series if not each.last.chooses]
    models = list(dict.fromkeys(each.model for each in lifts))
    cells = {(each.title, each.model): _summary(each) for each in lifts}
    if len(cells) == 1:
        return
    titles = dict.fromkeys(each.title for each in lifts)
    rows = [[title, *(cells.get((title, model), "") for model in models)] for title in titles]
    rows.insert(0, ["lift (change)", *models])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        padded = (text.ljust(width) for text, width in zip(row, widths, strict=True))
        yield "  ".join(padded).rstrip()
    yield ""


def _summary(series: Series) -> str:
    """Return ``+20 (-3) $0.0012``, and WORSE after a regression."""
    lift, cost = series.last.number("lift"), series.last.number("cost_usd.with")
    change = "" if series.change is None else f"({points(series.change)})"
    worse = WORSE if series.is_worse(len(series.points) - 1) else ""
    price = "" if cost is None else money(cost)
    shown = "n/a" if lift is None else points(lift)
    return " ".join(filter(None, (shown, change, price, worse)))


def _bars(point: Point, metric: Metric, *, blocks: bool) -> Iterator[str]:
    """Yield the published picture: a bar without the skill and one with it; or two rates."""
    if point.chooses:
        metric, change = "success", ""
        names = {"recall": "trigger.recall", "false": "trigger.false_triggers"}
        values = {name: point.number(figure) for name, figure in names.items()}
    else:
        figure = "pass_rate" if metric == "success" else "tokens"
        arms = {"baseline": "without", "with skill": "with"}
        values = {name: point.number(f"{figure}.{arm}") for name, arm in arms.items()}
        change = _change(values["baseline"], values["with skill"], metric)
        corrected = point.number("lift.corrected")
        if change and corrected is not None and metric == "success":
            change = f"({points(corrected)}%, judged {change[1:-1]})"
    most = 1.0 if metric == "success" else max([0.0, *filter(None, values.values())])
    for name, value in values.items():
        end = f"  {change}" if name == "with skill" and change else ""
        yield f"  {name:10} {bar(value, most, blocks)}  {_figure(value, metric):>4}{end}"


def _table(series: Series, last: int, metric: Metric) -> Iterator[str]:
    breaks = series.breaks
    shown = list(enumerate(series.points))[-last:]
    several = len({point.branch for point in series.points if point.branch}) > 1
    rows = [
        (*_when(point, several), *_figures(point, metric), WORSE if series.is_worse(index) else "")
        for index, point in shown
    ]
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
        f"{point.date:%Y-%m-%d %H:%M}",
        point.commit,
        branch if len(branch) <= _BRANCH else f"{branch[: _BRANCH - 3]}...",
    )


def _figures(point: Point, metric: Metric) -> tuple[str, ...]:
    columns = point.columns
    if point.chooses:
        return f"recall {columns['recall [95 %]']}", f"false {columns['false triggers']}"
    means = columns["pass rate" if metric == "success" else "tokens"]
    return means, columns["lift [95 %]"], point.verdict


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
    full, empty = _BLOCKS if blocks else ("#", ".")
    length = round(_BAR * value / most) if value and most else 0
    return full * length + empty * (_BAR - length)


def write_csv(history: History) -> str:
    """Return the history as CSV with a head; rates and lifts are fractions, costs dollars.

    A row has the figures of one kind: the lift, or how often the skill was chosen.
    """
    rows = [row for series in history.series for row in _csv_rows(series)]
    columns = dict.fromkeys(name for row in rows for name in row)
    stream = io.StringIO()
    writer = csv.DictWriter(
        stream, fieldnames=list(columns), lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC
    )
    writer.writeheader()
    writer.writerows(rows)
    return stream.getvalue()


def _csv_rows(series: Series) -> Iterator[Mapping[str, Scalar]]:
    """Yield the row of each point of a series."""
    breaks = series.breaks
    for index, point in enumerate(series.points):
        row = _origin(point) | {"break": breaks.get(index, "")}
        row |= {name.replace(".", "_"): value for name, value in point.figures.items()}
        yield {name: _harmless(value) for name, value in row.items()}


def _origin(point: Point) -> dict[str, Scalar]:
    """Return what a point is about, and where it is from."""
    revision = point.run.revision
    return {
        "date": f"{point.date:%Y-%m-%dT%H:%M:%SZ}",
        "commit": revision.commit if revision else "",
        "branch": revision.branch if revision else "",
        "dirty": revision.dirty if revision else None,
        "subject": point.subject,
        "command": point.run.command,
        "file": point.file,
        "skill": point.skill,
        "path": point.cell.path,
        "model": point.cell.model,
        "resolved": point.resolved,
        "served": ", ".join(point.served),
    }


def _harmless(value: Scalar) -> Scalar:
    """Return a text that no spreadsheet takes for a formula; other values unchanged."""
    if not isinstance(value, str):
        return value
    return _FORMULA.sub(r"\1'", safe_line(value))
