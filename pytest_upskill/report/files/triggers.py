"""Triggers in report files: figures for JSON, and the confusion matrix of a model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from pytest_upskill.cells.trigger_cell import Confusion, Rate, TriggerCell
from pytest_upskill.cells.trigger_comparison import TriggerComparison
from pytest_upskill.cells.trigger_gate import TriggerGate


@dataclass(frozen=True, slots=True, kw_only=True)
class TriggerFigures:
    """Figures of a trigger cell; computed again when a report is read."""

    recall: Rate | None
    """Share of the queries that should trigger the skill for which a right one is chosen."""
    false_triggers: Rate | None
    """Share of the other queries for which the skill is chosen."""
    precision: float | None
    """Share of the skill's triggers that are wanted."""
    queries: int
    """Queries with a valid run."""
    missing: int
    """Runs without a usable reply."""
    confusions: tuple[Confusion, ...]
    """How often each skill was wanted and taken, in runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TriggerDecision:
    """Decision of the gate about a trigger cell."""

    outcome: Literal["passed", "failed", "skipped"]
    text: str
    regressed: bool
    """Whether the right skill is taken less often than before."""
    comparison: TriggerComparison | None
    """Comparison with the baseline or the git ref; None for none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TriggerEntry:
    """A trigger cell, its figures, and its gate."""

    cell: TriggerCell
    figures: TriggerFigures
    gate: TriggerDecision


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfusionMatrix:
    """Which skill one model chose for each wanted skill."""

    model: str
    taken: tuple[str, ...]
    """Columns."""
    rows: tuple[tuple[str, tuple[int, ...]], ...]
    """What was wanted, and how many runs took each column."""


def trigger_entry(gate: TriggerGate) -> TriggerEntry:
    """Return a gate with its cell and the figures for JSON."""
    cell = gate.cell
    figures = TriggerFigures(
        recall=cell.recall,
        false_triggers=cell.false_triggers,
        precision=cell.precision,
        queries=cell.queries,
        missing=cell.missing,
        confusions=tuple(cell.confusions),
    )
    decision = TriggerDecision(
        outcome=gate.outcome, text=gate.text, regressed=gate.regressed, comparison=gate.comparison
    )
    return TriggerEntry(cell=cell, figures=figures, gate=decision)


def trigger_gate_of(entry: TriggerEntry) -> TriggerGate:
    """Return the gate of an entry that was read from JSON."""
    return TriggerGate(
        cell=entry.cell,
        outcome=entry.gate.outcome,
        text=entry.gate.text,
        comparison=entry.gate.comparison,
    )


def confusion_matrices(gates: Sequence[TriggerGate]) -> list[ConfusionMatrix]:
    """Return the confusion matrix of each model in whose cells a query went wrong."""
    matrices = []
    for model in dict.fromkeys(gate.cell.model for gate in gates):
        cells = [gate.cell for gate in gates if gate.cell.model == model]
        if not any(cell.mistakes for cell in cells):
            continue
        counts: Counter[tuple[str, str]] = Counter()
        for each in (each for cell in cells for each in cell.confusions):
            counts[each.wanted, each.taken] += each.runs
        taken = tuple(sorted({pair[1] for pair in counts}))
        rows = tuple(
            (wanted, tuple(counts[wanted, name] for name in taken))
            for wanted in sorted({pair[0] for pair in counts})
        )
        matrices.append(ConfusionMatrix(model=model, taken=taken, rows=rows))
    return matrices
