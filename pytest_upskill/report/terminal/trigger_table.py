"""The table of trigger cells, one line for each skill on each model, and notes about them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pytest_upskill.cells.gate import TriggerGate
from pytest_upskill.cells.thresholds import Thresholds
from pytest_upskill.cells.trigger_cell import BY_WORDS, TriggerCell
from pytest_upskill.cells.wording import mistakes, rate_text, share_text, too_few_queries_notes
from pytest_upskill.report.terminal.table import Row, laid_out
from pytest_upskill.trials.result import TrialResult

_HEAD = ("skill on model", "recall [95 %]", "false triggers", "precision", "queries")
TRIGGER_LEGEND = (
    "recall: share of the queries that should trigger the skill for which it is chosen; false "
    "triggers: the same share of all other queries; 95 % intervals count queries, not runs"
)
"""Explanation of the columns."""

_LEAST_COLUMNS = 3


def trigger_table(
    gates: Sequence[TriggerGate], width: int, *, queries: bool
) -> list[tuple[str, TriggerGate | None]]:
    """Return the lines of the table.

    Args:
        gates: Decision about each trigger cell.
        width: Columns of the terminal.
        queries: Whether to add a row for each query.

    Returns:
        Lines, each with the gate of its cell, if it is the row of a cell.
    """
    rows: list[Row[TriggerGate]] = [(_HEAD, None)]
    for gate in gates:
        rows.append((_columns(gate.cell), gate))
        if queries:
            rows += [(_query(trial), None) for trial in gate.cell.current_trials]
    return laid_out(rows, width, least=_LEAST_COLUMNS)


def trigger_notes(
    gates: Sequence[TriggerGate], thresholds: Thresholds | None = None
) -> Iterator[str]:
    """Yield the notes about all trigger cells.

    Args:
        gates: Decision about each trigger cell.
        thresholds: Limits by which to tell how many queries would do; None to leave that out.
    """
    for gate in gates:
        cell = gate.cell
        yield from (f"{cell.name}: {note}" for note in cell.ending_notes)
        if gate.outcome == "skipped" and not cell.by_words:
            yield f"{cell.name}: {gate.text}"
        elif cell.missing:
            yield f"{cell.name}: missing runs (no usable reply): {cell.missing}"
        if cell.mistakes:
            yield f"{cell.name}: {mistakes(cell)}"
        if gate.comparison is not None:
            yield from (f"{cell.name}: {remark}" for remark in gate.comparison.remarks)
        if thresholds is not None and not cell.by_words:
            yield from (f"{cell.name}: {note}" for note in too_few_queries_notes(cell, thresholds))
    if any(gate.cell.by_words for gate in gates):
        yield f"triggers: {BY_WORDS}, so its choices fail no run"


def _columns(cell: TriggerCell) -> tuple[str, ...]:
    return (
        cell.name,
        rate_text(cell.recall),
        rate_text(cell.false_triggers),
        share_text(cell.precision),
        str(cell.queries),
    )


def _query(trial: TrialResult) -> tuple[str, ...]:
    """Return the row of a query: how often it was answered rightly."""
    right = f"{trial.passes}/{len(trial.runs)} right{', failed' if trial.failed else ''}"
    should = trial.trigger is not None and trial.trigger.should
    return (f"  {trial.case}", right if should else "", "" if should else right, "", "")
