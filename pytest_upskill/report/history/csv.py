"""The history as a table in CSV, one row for each skill on each model in each run."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping

from pytest_upskill.figures.figure import Scalar
from pytest_upskill.project.messages import safe_line
from pytest_upskill.report.history.runs import History, Point, Series

_FORMULA = re.compile(r"(^|[;,\t])(?=\s*[=+@-])")
"""Before what a spreadsheet would calculate, also if it separates fields by semicolons."""


def write_csv(history: History) -> str:
    """Return the history as CSV with a head; rates and lifts are fractions, costs dollars.

    A row has the figures of one kind: the lift, or how often the skill was chosen.
    """
    rows = [row for series in history.series for row in _rows(series)]
    columns = dict.fromkeys(name for row in rows for name in row)
    stream = io.StringIO()
    writer = csv.DictWriter(
        stream, fieldnames=list(columns), lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC
    )
    writer.writeheader()
    writer.writerows(rows)
    return stream.getvalue()


def _rows(series: Series) -> Iterator[Mapping[str, Scalar]]:
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
