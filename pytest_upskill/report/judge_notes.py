"""Notes about what a judge decided in a cell."""

from __future__ import annotations

from collections.abc import Iterator

from pytest_upskill.cells.cell import Cell
from pytest_upskill.cells.gate import Gate
from pytest_upskill.cells.judged import Judged
from pytest_upskill.cells.wording import corrected, estimate, found, judged_past, tipping

_MOSTLY = 0.5
"""Share of an interval's squared width from which on more labels narrow it most."""


def judge_notes(gate: Gate) -> Iterator[str]:
    """Yield the notes about a cell whose verdict rests on a judge."""
    cell, judged = gate.cell, gate.cell.judged
    if judged is None:
        return
    if gate.verdict == "regression":
        yield judged_past()
    if judged.calibrated:
        yield from _calibrated(cell, judged)
    else:
        yield from _uncalibrated(cell, judged)


def _calibrated(cell: Cell, judged: Judged) -> Iterator[str]:
    if cell.lift is not None:
        yield f"judged {estimate(cell.lift)}, {corrected(cell)}"
    for arm, agreement in (("with", judged.with_skill), ("without", judged.without_skill)):
        if agreement is not None:
            yield f"judge {arm} the skill: {found(agreement)}"
    yield from (f"judge: {note}" for note in judged.notes)
    correction = judged.correction
    if cell.verdict == "too few runs" and correction and correction.judge_share > _MOSTLY:
        yield "too few labels: more of them would narrow the interval most"


def _uncalibrated(cell: Cell, judged: Judged) -> Iterator[str]:
    if text := tipping(cell):
        yield f"{cell.verdict} by an uncalibrated judge: {text}"
    elif judged.alone == "no effect" and cell.verdict == "too few runs":
        yield (
            "an uncalibrated judge cannot show that a skill has no effect: its errors in both arms "
            "shrink every lift"
        )
    if cell.labels is not None:
        yield from (f"judge: {reason}" for reason in judged.reasons)
