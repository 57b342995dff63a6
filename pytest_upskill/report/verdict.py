"""The lift and the verdict of a cell, as every report writes them."""

from __future__ import annotations

from pytest_upskill.cells.cell import Cell
from pytest_upskill.cells.gate import Gate
from pytest_upskill.cells.wording import points


def lift(cell: Cell) -> str:
    """Return the lift, ``+20 [-3,+41]``; the corrected one beside the one that a judge found."""
    if cell.lift is None or cell.interval is None:
        return "n/a"
    if correction := cell.judged and cell.judged.correction:
        low, high = points(correction.low), points(correction.high)
        return f"{points(correction.lift)} [{low},{high}], judged {points(cell.lift)}"
    low, high = map(points, cell.interval)
    return f"{points(cell.lift)} [{low},{high}]"


def verdict_of(gate: Gate) -> str:
    """Return the verdict, and that it is uncalibrated where a judge alone gave it."""
    alone = gate.cell.uncalibrated and gate.verdict in {"helps", "hurts"}
    return f"{gate.verdict}, uncalibrated" if alone else gate.verdict
