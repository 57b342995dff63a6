"""The table of cells as lines that fit a terminal's width, in ASCII except for names."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from pytest_upskill.figures.arm import ArmFigures, Pair, figures
from pytest_upskill.figures.figure import trigger_columns
from pytest_upskill.figures.gate import Gate, TriggerGate
from pytest_upskill.figures.thresholds import Thresholds
from pytest_upskill.figures.trigger_cell import BY_WORDS
from pytest_upskill.figures.wording import (
    columns,
    lift,
    mistakes,
    percent,
    points,
    times,
    too_few_queries_notes,
)
from pytest_upskill.trials.result import TrialResult

_HEAD = ("model", "pass rate", "lift [95 %]", "verdict", "checks", "tokens")
LEGEND = (
    "mean per run, without -> with the skill: pass rate, checks passed/all, tokens (x: ratio); "
    "lift in percentage points"
)
"""Explanation of the columns."""

_LEAST_COLUMNS = 4
"""Minimum number of columns on a narrow terminal; other reports have all."""
_LEAST_NAME = 8
_GAP = "  "


G = TypeVar("G", bound=Gate | TriggerGate)
Row = tuple[Sequence[str], G | None]
"""Columns, and the gate of the row's cell; None for the head, a skill's name or a single case."""


def table(gates: Sequence[Gate], width: int, *, cases: bool) -> list[tuple[str, Gate | None]]:
    """Return the lines of the table, grouped by skill.

    Args:
        gates: Gates, those of one skill next to each other.
        width: Columns of the terminal.
        cases: Whether to add a row for each case.

    Returns:
        Lines, each with the gate of its cell, if it is the row of a cell.
    """
    return laid_out(list(_rows(gates, cases=cases)), width, least=_LEAST_COLUMNS)


def laid_out(rows: Sequence[Row[G]], width: int, *, least: int) -> list[tuple[str, G | None]]:
    """Return the lines of a table; the last columns are left out where there is no room.

    Args:
        rows: The rows, the head first.
        width: Columns of the terminal.
        least: Minimum number of columns besides the name.
    """
    widths = _fit([columns for columns, _ in rows], width, least=least)
    return [(line, gate) for columns, gate in rows for line in _lines_of_row(columns, widths)]


def _rows(gates: Sequence[Gate], *, cases: bool) -> Iterator[Row[Gate]]:
    yield _HEAD, None
    path = None
    for gate in gates:
        cell = gate.cell
        if cell.path != path:
            path = cell.path
            yield (cell.title,), None
        yield _cell_columns(gate), gate
        if cases:
            old = {pair.now.case: pair.then for pair in cell.old_pairs}
            for pair in cell.pairs.measured:
                yield _case_columns(pair, old.get(pair.case)), None
            for case in cell.cases_not_run:
                yield (f"    {case}", "skipped", "", "", "", ""), None


def _cell_columns(gate: Gate) -> tuple[str, ...]:
    cell = gate.cell
    return (
        f"  {cell.model}",
        _change(
            cell.without_skill,
            cell.with_skill,
            lambda arm: percent(arm.pass_rate),
            old=cell.old_skill,
        )
        + "%",
        lift(cell),
        _verdict(gate),
        *_means(cell.without_skill, cell.with_skill),
    )


def _case_columns(pair: Pair, old: TrialResult | None) -> tuple[str, ...]:
    with_, without = figures([pair.with_skill.runs]), figures([pair.without_skill.runs])
    before = figures([old.runs]) if old else None
    return (
        f"    {pair.case}",
        _change(without, with_, lambda arm: f"{arm.passes}/{arm.runs}", old=before),
        points(with_.pass_rate - without.pass_rate),
        "failed" if pair.with_skill.failed else "",
        *_means(without, with_),
    )


def _verdict(gate: Gate) -> str:
    """Return the verdict, and how many cases failed, in as few columns as possible."""
    failed = len(gate.cell.failed_cases)
    return f"{gate.qualified_verdict}, {failed} failed" if failed else gate.qualified_verdict


def _means(without: ArmFigures | None, with_: ArmFigures | None) -> tuple[str, str]:
    """Return the mean checks and tokens of a run."""
    checks = _change(without, with_, lambda arm: f"{arm.checks_passed:.1f}")
    arm = with_ or without
    tokens = _change(
        without, with_, lambda arm: "n/a" if arm.tokens is None else f"{arm.tokens:.0f}"
    )
    if ratio := times(without, with_):
        tokens += f" x{ratio}"
    return checks + (f"/{arm.checks:.1f}" if arm else ""), tokens


def _change(
    without: ArmFigures | None,
    with_: ArmFigures | None,
    form: Callable[[ArmFigures], str],
    *,
    old: ArmFigures | None = None,
) -> str:
    """Return a figure of each arm: without the skill, with the old one if any, with the skill."""
    arms = [without, with_] if old is None else [without, old, with_]
    return "->".join(form(arm) if arm else "?" for arm in arms)


def _fit(rows: Sequence[Sequence[str]], width: int, *, least: int) -> list[int]:
    """Return the widths of the columns that fit, by the rows that have as many as the first."""
    full = [row for row in rows if len(row) == len(rows[0])]
    names, *figures = zip(*full, strict=True)
    widths = [max(map(len, column)) for column in figures]
    room = width - sum(len(_GAP) + each for each in widths)
    while len(widths) >= least and room < _LEAST_NAME:
        room += len(_GAP) + widths.pop()
    fitting = (each for each in map(columns, names) if each <= room)
    return [max([_LEAST_NAME, *fitting]), *widths]


def _lines_of_row(row: Sequence[str], widths: Sequence[int]) -> Iterator[str]:
    """Yield the lines of a row; a name that is too long gets its own line and is never cut."""
    name, *rest = row[: len(widths)]
    indent = len(name) - len(name.lstrip())
    if not rest or columns(name) > widths[0]:
        yield name
        name = " " * indent
    if rest:
        padding = " " * (widths[0] - columns(name))
        padded = (text.ljust(width) for text, width in zip(rest, widths[1:], strict=True))
        yield _GAP.join([name + padding, *padded]).rstrip()


_TRIGGER_HEAD = ("skill on model", "recall [95 %]", "false triggers", "precision", "queries")
TRIGGER_LEGEND = (
    "recall: share of the queries that should trigger the skill for which it is chosen; false "
    "triggers: the same share of all other queries; 95 % intervals count queries, not runs"
)
"""Explanation of the columns."""

_LEAST_TRIGGER_COLUMNS = 3


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
    rows: list[Row[TriggerGate]] = [(_TRIGGER_HEAD, None)]
    for gate in gates:
        rows.append(((gate.cell.name, *trigger_columns(gate.cell)), gate))
        if queries:
            rows += [(_query(trial), None) for trial in gate.cell.current_trials]
    return laid_out(rows, width, least=_LEAST_TRIGGER_COLUMNS)


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


def _query(trial: TrialResult) -> tuple[str, ...]:
    """Return the row of a query: how often it was answered rightly."""
    right = f"{trial.passes}/{len(trial.runs)} right{', failed' if trial.failed else ''}"
    should = trial.trigger is not None and trial.trigger.should
    return (f"  {trial.case}", right if should else "", "" if should else right, "", "")
