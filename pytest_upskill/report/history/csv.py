"""The history as a table in CSV, one row for each skill on each model in each run."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from typing import Any

from pytest_upskill.report.history.points import History, Point
from pytest_upskill.sanitize.safe_text import safe_line

_FORMULA = ("=", "+", "-", "@")
"""First characters of what spreadsheets calculate."""


def write_csv(history: History) -> str:
    """Return the history as CSV with a head; rates and lifts are fractions, costs dollars."""
    rows = []
    for series in history.series:
        breaks = series.breaks
        rows += [_row(point, breaks.get(index, "")) for index, point in enumerate(series.points)]
    stream = io.StringIO()
    writer = csv.DictWriter(stream, fieldnames=list(rows[0]) if rows else [], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return stream.getvalue()


def _row(point: Point, why: str) -> Mapping[str, Any]:
    """Return the row of a point; ``why`` it cannot be compared with the one before it."""
    cell, revision = point.cell, point.revision
    one, other = cell.with_skill, cell.without_skill
    row = {
        "date": f"{point.date:%Y-%m-%dT%H:%M:%SZ}",
        "commit": revision.commit if revision else "",
        "branch": revision.branch if revision else "",
        "dirty": revision.dirty if revision else None,
        "skill": cell.skill,
        "path": cell.case_file or cell.path,
        "model": cell.model,
        "resolved": cell.resolved,
        "served": ", ".join(cell.served),
        "cases": len(cell.pairs),
        "runs_with": one and one.runs,
        "runs_without": other and other.runs,
        "pass_rate_with": one and one.pass_rate,
        "pass_rate_without": other and other.pass_rate,
        "lift": cell.lift,
        "lift_low": cell.interval and cell.interval.low,
        "lift_high": cell.interval and cell.interval.high,
        "verdict": cell.verdict,
        "tokens_with": one and one.tokens,
        "tokens_without": other and other.tokens,
        "cost_usd_with": one and one.cost_usd,
        "cost_usd_without": other and other.cost_usd,
        "break": why,
        "file": point.file,
    }
    return {name: _harmless(value) for name, value in row.items()}


def _harmless(value: object) -> object:
    """Return a text that no spreadsheet takes for a formula; other values unchanged."""
    if not isinstance(value, str):
        return value
    text = safe_line(value)
    return f"'{text}" if text.startswith(_FORMULA) else text
