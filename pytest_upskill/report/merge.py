"""Merging of reports: cells are joined from the parts in each report."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain

from pytest_upskill.figures.baseline import Baselines
from pytest_upskill.figures.cell import Cell, with_places
from pytest_upskill.figures.gate import decide_gates
from pytest_upskill.figures.thresholds import Thresholds
from pytest_upskill.report.document import Report
from pytest_upskill.report.files.json import ReportError
from pytest_upskill.trials.result import AnswerLabel, CellLabels, TrialResult
from pytest_upskill.trials.trial import ARMS


def merge(
    reports: Mapping[str, Report],
    thresholds: Thresholds,
    baselines: Baselines | None,
) -> Report:
    """Merge reports, and decide the gate of every cell again.

    Args:
        reports: Reports by the name of their file.
        thresholds: Thresholds of the gates.
        baselines: Baselines to compare with; None for no comparison.

    Raises:
        ReportError: The reports contradict each other or contain the same trial.
    """
    cells = _merge_cells(
        (file, gate.cell) for file, report in reports.items() for gate in report.gates
    )
    return Report(
        sessions=tuple(chain.from_iterable(report.sessions for report in reports.values())),
        gates=tuple(decide_gates(cells, thresholds, baselines)),
    )


def _merge_cells(cells: Iterable[tuple[str, Cell]]) -> list[Cell]:
    """Return the cells of all files, each joined from its parts, in the order of a session."""
    parts: dict[tuple[bool, str, str], list[tuple[str, Cell]]] = {}
    for file, cell in cells:
        parts.setdefault((cell.chooses, cell.path, cell.model), []).append((file, cell))
    models = list(dict.fromkeys(model for *_, model in parts))
    in_order = sorted(parts, key=lambda key: (*key[:2], models.index(key[2])))
    return with_places(_join_parts(parts[key]) for key in in_order)


def _join_parts(parts: Sequence[tuple[str, Cell]]) -> Cell:
    """Return one cell joined from its parts.

    Raises:
        ReportError: The parts contradict each other or contain the same trial.
    """
    files: dict[object, str] = {}
    first_file, first = parts[0]
    for file, cell in parts:
        name = f"{cell.skill} on {cell.model}"
        if (what := _difference(first, cell)) is not None:
            raise ReportError(f"{name} has {what} in {first_file} and {file}: do not mix them")
        for trial in cell.trials:
            other = files.setdefault((trial.case, trial.arm), file)
            if other != file:
                raise ReportError(
                    f"{name}: {trial.case!r} {trial.arm} is in {other} and in {file}: leave one out"
                )
    cells = [cell for _, cell in parts]
    return replace(
        first,
        trials=tuple(_sort_trials(chain.from_iterable(cell.trials for cell in cells))),
        skipped=tuple(sorted({case for cell in cells for case in cell.skipped})),
        labels=_join_labels([cell.labels for cell in cells if cell.labels is not None]),
    )


def _join_labels(parts: Sequence[CellLabels]) -> CellLabels | None:
    """Return the labels of all parts; an answer is in the run if it is in one of its parts."""
    if not parts:
        return None
    labels: dict[int, AnswerLabel] = {}
    for label in chain.from_iterable(part.labels for part in parts):
        if label.id not in labels or label.present:
            labels[label.id] = label
    problems = dict.fromkeys(chain.from_iterable(part.problems for part in parts))
    return CellLabels(
        labels=tuple(label for _, label in sorted(labels.items())), problems=tuple(problems)
    )


def _difference(one: Cell, other: Cell) -> str | None:
    """Return why two cells cannot be parts of the same cell, None if they can."""
    if one.resolved != other.resolved:
        return f"different models ({one.resolved}, {other.resolved})"
    if one.planned != other.planned:
        return f"{one.planned} and {other.planned} trials"
    if one.judge != other.judge:
        return f"different judges ({one.judge or 'none'}, {other.judge or 'none'})"
    if (one.gate, one.ref) != (other.gate, other.ref):
        return "different gates"
    digests = {trial.arm: trial.skill_digest for trial in one.trials}
    if any(digests.get(t.arm, t.skill_digest) != t.skill_digest for t in other.trials):
        return "a different SKILL.md"
    return None


def _sort_trials(trials: Iterable[TrialResult]) -> list[TrialResult]:
    """Return trials in the order of the case file, the arms of a case next to each other."""
    trials = list(trials)
    first: dict[str, int] = {}
    for place, trial in enumerate(trials):
        first.setdefault(trial.case, place)
    return sorted(trials, key=lambda t: (t.line, first[t.case], ARMS.index(t.arm)))
