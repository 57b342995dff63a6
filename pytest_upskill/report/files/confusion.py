"""Which skill a model chose for each that was wanted, as a matrix."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from pytest_upskill.cells.gate import TriggerGate


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfusionMatrix:
    """Which skill one model chose for each wanted skill."""

    model: str
    taken: tuple[str, ...]
    """Columns."""
    rows: tuple[tuple[str, tuple[int, ...]], ...]
    """What was wanted, and how many runs took each column."""


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
