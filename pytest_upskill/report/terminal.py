"""The tables of cells as lines that fit a terminal's width, in ASCII except for names."""

from collections.abc import Iterator, Sequence

from pytest_upskill.figures.gate import Gate
from pytest_upskill.figures.presentation import case_columns, case_lines, columns_of, in_words
from pytest_upskill.figures.wording import columns, wrap
from pytest_upskill.trials.result import TrialResult

LEGEND = "mean per run, without -> with the skill; lift in percentage points; checks: passed/all"
TRIGGER_LEGEND = (
    "recall: share of the queries that should trigger the skill for which it is chosen; false "
    "triggers: the same share of all other queries; 95 % intervals count queries, not runs"
)
"""Explanations of the columns."""

_LEAST_COLUMNS = 4
"""Minimum number of columns on a narrow terminal; other reports have all."""
_LEAST_NAME = 8
_GAP = "  "
_INDENT = "    "

Row = tuple[Sequence[str], Gate | None]
"""Columns, and the gate of the row's cell; None for the head, a skill's name or a single case."""


def table(gates: Sequence[Gate], width: int, *, cases: bool) -> list[tuple[str, Gate | None]]:
    """Return the lines of the table of lifts or of choices.

    Args:
        gates: Gates of one measure, those of one skill next to each other; at least one.
        width: Columns of the terminal.
        cases: Whether to add a row for each case or query.

    Returns:
        Lines, each with the gate of its cell, if it is the row of a cell.
    """
    rows_of = _trigger_rows if gates[0].cell.chooses else _lift_rows
    rows = list(rows_of(gates, width, cases=cases))
    widths = _fit([texts for texts, _ in rows], width)
    return [(line, gate) for texts, gate in rows for line in _lines_of_row(texts, widths)]


def _lift_rows(gates: Sequence[Gate], width: int, *, cases: bool) -> Iterator[Row]:
    yield ("model", *columns_of(gates[0])), None
    path = None
    for gate in gates:
        cell = gate.cell
        if cell.path != path:
            path = cell.path
            yield (cell.title,), None
        yield (f"  {cell.model}", *columns_of(gate).values()), gate
        for line in wrap(in_words(gate), width - len(_INDENT)):
            yield (f"{_INDENT}{line}",), None
        if cases:
            for case in case_lines(gate):
                passed, difference, *means = case_columns(case).values()
                failed = "failed" if case.failed else ""
                yield (f"    {case.case}", passed, difference, failed, *means), None
            for name in cell.cases_not_run:
                yield (f"    {name}", "skipped", "", "", "", ""), None


def _trigger_rows(gates: Sequence[Gate], _width: int, *, cases: bool) -> Iterator[Row]:
    yield ("skill on model", *columns_of(gates[0])), None
    for gate in gates:
        yield (gate.cell.name, *columns_of(gate).values()), gate
        if cases:
            yield from ((_query(trial), None) for trial in gate.cell.current_trials)


def _query(trial: TrialResult) -> tuple[str, ...]:
    """Return the row of a query: how often it was answered rightly."""
    right = f"{trial.passes}/{len(trial.runs)} right{', failed' if trial.failed else ''}"
    should = trial.trigger is not None and trial.trigger.should
    return (f"  {trial.case}", right if should else "", "" if should else right, "", "")


def _fit(rows: Sequence[Sequence[str]], width: int) -> list[int]:
    """Return the widths of the columns that fit, by the rows that have as many as the first."""
    full = [row for row in rows if len(row) == len(rows[0])]
    names, *figures = zip(*full, strict=True)
    widths = [max(map(len, column)) for column in figures]
    room = width - sum(len(_GAP) + each for each in widths)
    while len(widths) >= _LEAST_COLUMNS and room < _LEAST_NAME:
        room += len(_GAP) + widths.pop()
    fitting = (each for each in map(columns, names) if each <= room)
    return [max([_LEAST_NAME, *fitting]), *widths]


def _lines_of_row(row: Sequence[str], widths: Sequence[int]) -> Iterator[str]:
    """Yield the lines of a row; a name that is too long gets its own line and is never cut."""
    name, *rest = row[: len(widths)]
    if not rest or columns(name) > widths[0]:
        yield name
        name = " " * (len(name) - len(name.lstrip()))
    if rest:
        padding = " " * (widths[0] - columns(name))
        padded = (text.ljust(width) for text, width in zip(rest, widths[1:], strict=True))
        yield _GAP.join([name + padding, *padded]).rstrip()
