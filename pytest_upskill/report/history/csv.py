"""The history as a table in CSV, one row for each skill on each model in each run."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from pytest_upskill.figures.cell import Cell
from pytest_upskill.figures.trigger_cell import TriggerCell
from pytest_upskill.project.messages import safe_line
from pytest_upskill.report.history.points import Group, History, Point, Series
from pytest_upskill.stats import Estimate

_FORMULA = re.compile(r"(^|[;,\t])(?=\s*[=+@-])")
"""Before what a spreadsheet would calculate, also if it separates fields by semicolons."""


def write_csv(history: History) -> str:
    """Return the history as CSV with a head; rates and lifts are fractions, costs dollars.

    A row has the figures of one kind: the lift, or how often the skill was chosen.
    """
    rows = [row for series in history.series for row in _rows(series, _lift)]
    rows += [row for series in history.triggers for row in _rows(series, _triggers)]
    columns = dict.fromkeys(name for row in rows for name in row)
    stream = io.StringIO()
    writer = csv.DictWriter(
        stream, fieldnames=list(columns), lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC
    )
    writer.writeheader()
    writer.writerows(rows)
    return stream.getvalue()


def _rows(
    series: Series[Group], figures_of: Callable[[Group], dict[str, Any]]
) -> Iterator[Mapping[str, Any]]:
    """Yield the row of each point of a series."""
    breaks = series.breaks
    for index, point in enumerate(series.points):
        row = _origin(point) | {"break": breaks.get(index, "")} | figures_of(point.cell)
        yield {name: _harmless(value) for name, value in row.items()}


def _origin(point: Point[Group]) -> dict[str, Any]:
    """Return what a point is about, and where it is from."""
    cell, revision = point.cell, point.revision
    return {
        "date": f"{point.date:%Y-%m-%dT%H:%M:%SZ}",
        "commit": revision.commit if revision else "",
        "branch": revision.branch if revision else "",
        "dirty": revision.dirty if revision else None,
        "file": point.file,
        "skill": cell.skill,
        "path": point.path,
        "model": cell.model,
        "resolved": cell.resolved,
        "served": ", ".join(cell.served),
    }


def _lift(cell: Cell) -> dict[str, Any]:
    with_, without = cell.with_skill, cell.without_skill
    return {
        "kind": "lift",
        "cases": len(cell.pairs.measured),
        "runs_with": with_ and with_.runs,
        "runs_without": without and without.runs,
        "pass_rate_with": with_ and with_.pass_rate,
        "pass_rate_without": without and without.pass_rate,
        **_estimate("lift", cell.deciding_lift),
        "lift_judged": cell.lift.estimate if cell.lift and cell.judged else None,
        "verdict": cell.verdict,
        **{
            f"cut_{arm.arm.removesuffix('_skill')}": arm.cut
            for arm in cell.endings
            if arm.arm != "old_skill"
        },
        "tokens_with": with_ and with_.tokens,
        "tokens_without": without and without.tokens,
        "cost_usd_with": with_ and with_.cost_usd,
        "cost_usd_without": without and without.cost_usd,
    }


def _triggers(cell: TriggerCell) -> dict[str, Any]:
    return {
        "kind": "triggers",
        "queries": cell.queries,
        **_estimate("recall", cell.recall),
        **_estimate("false_triggers", cell.false_triggers),
        "precision": cell.precision,
    }


def _estimate(name: str, value: Estimate | None) -> dict[str, float | None]:
    low, high = f"{name}_low", f"{name}_high"
    if value is None:
        return dict.fromkeys((name, low, high))
    return {name: value.estimate, low: value.low, high: value.high}


def _harmless(value: object) -> object:
    """Return a text that no spreadsheet takes for a formula; other values unchanged."""
    if not isinstance(value, str):
        return value
    return _FORMULA.sub(r"\1'", safe_line(value))
