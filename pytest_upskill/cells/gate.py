"""The gate: a decision about each cell, reported like a test."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Literal

from pytest_upskill.cells.cell import Cell, CellVerdict
from pytest_upskill.cells.cell_gate import (
    CellGate,
    Problem,
    make_gate,
    regression_problems,
    skipped_gate,
    too_low,
    with_comparisons,
)
from pytest_upskill.cells.thresholds import Thresholds
from pytest_upskill.cells.wording import JUDGED_PAST, cell_sentence, percent

if TYPE_CHECKING:
    from pytest_upskill.cells.baseline_folder import Baselines
    from pytest_upskill.cells.comparison import Comparison

_REASONS: Mapping[CellVerdict, str] = {
    "hurts": "the skill hurts",
    "no effect": "the skill has no effect",
    "too few runs": "too few runs to tell",
}
"""Why a gate fails, by the verdict that fails it."""

NOT_MEASURED = 75
"""Exit code (EX_TEMPFAIL) if data is missing and nothing failed."""


ShownVerdict = CellVerdict | Literal["regression"]
"""A cell's verdict, or ``regression``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate(CellGate):
    """Decision about one cell of answers."""

    kind: ClassVar[str] = "gate"

    cell: Cell
    warning: str = ""
    """What to know about the decision; empty for nothing."""

    @property
    def verdict(self) -> ShownVerdict:
        """Verdict in reports: ``regression`` takes precedence over the cell's verdict."""
        if self.outcome != "skipped" and self.regressed:
            return "regression"
        return self.cell.verdict

    @property
    def qualified_verdict(self) -> str:
        """The verdict, marked as uncalibrated if it rests on a judge that no labels correct."""
        if self.cell.uncalibrated and self.verdict in {"helps", "hurts"}:
            return f"{self.verdict}, uncalibrated"
        return self.verdict

    @property
    def details(self) -> list[str]:
        """Lines below the text of a failed gate: of a regression lift and cases; advice."""
        if self.comparison is None or self.verdict != "regression":
            return [self._next_step] if self.outcome == "failed" else []
        lift = f"lift: {cell_sentence(self.cell)}"
        past = [JUDGED_PAST] if self.cell.judged else []
        return [lift, *self.comparison.worse_cases, *past, self.comparison.next_step]

    @property
    def _next_step(self) -> str:
        """Advice about a gate that failed without a regression."""
        if self.cell.verdict == "hurts":
            return (
                "next: read the answers that fail only with the skill, and correct or remove what "
                "misled the model"
            )
        return "next: add to the skill what the cases that fail with it ask for, or change the gate"


def decide_gates(
    cells: Sequence[Cell], thresholds: Thresholds, baselines: Baselines | None
) -> list[Gate]:
    """Decide the gate of every cell.

    Args:
        cells: All cells of the session; p-values are adjusted for their number.
        thresholds: Thresholds from the options.
        baselines: Baselines to compare with; None for no comparison. A cell with trials of an old
            skill from a git ref is compared with those instead.
    """
    return [
        decide_gate(cell, thresholds, past) for cell, past in with_comparisons(cells, baselines)
    ]


def decide_gate(cell: Cell, thresholds: Thresholds, comparison: Comparison | None = None) -> Gate:
    """Decide whether a cell meets the thresholds; with incomplete data there may be no decision.

    Args:
        cell: The cell.
        thresholds: Thresholds from the options; the case file's take precedence.
        comparison: Comparison with the cell's past, None for none.
    """
    if reason := cell.why_undecidable:
        misses_data = cell.missing_data_reason is not None
        return skipped_gate(Gate, cell, reason, misses_data=misses_data)
    thresholds = thresholds.with_overrides(cell.gate)
    gate = make_gate(
        Gate,
        cell,
        _problems(cell, thresholds, comparison),
        cell_sentence(cell),
        comparison=comparison,
    )
    if gate.outcome == "skipped" or not cell.uncalibrated:
        return gate
    return replace(gate, warning=_uncalibrated_warning(thresholds))


def _problems(
    cell: Cell, thresholds: Thresholds, comparison: Comparison | None
) -> Iterator[Problem]:
    """Yield the thresholds that the cell misses, or could miss because of open runs."""
    yield from regression_problems(comparison, thresholds, "the skill")
    corrected = "corrected " if cell.correction else ""
    min_pass_rate, min_lift = thresholds.min_mean_pass_rate, thresholds.min_lift
    rate = f"{corrected}pass rate with the skill{_corrected_rate(cell)}"
    yield from too_low(cell.pass_rate_if, min_pass_rate, f"{rate} is under {{:g}}%")
    yield from too_low(cell.lift_if, min_lift, f"{corrected}lift is under {{:+g}} points")
    if cell.uncalibrated and "uncalibrated" in thresholds.fail_on:
        yield Problem("it rests on an uncalibrated judge", is_certain=True)
    # What an uncalibrated judge decides against a skill may be its own mistake.
    is_doubtful = cell.uncalibrated and cell.verdict == "hurts"
    if cell.verdict.replace(" ", "-") in thresholds.fail_on and not is_doubtful:
        yield Problem(_REASONS[cell.verdict], is_certain=True)


def _corrected_rate(cell: Cell) -> str:
    """Return the corrected pass rate with the skill; empty without one, or if runs are missing.

    Only the uncorrected rate is in the sentence about the cell.
    """
    low, high = (cell.pass_rate_if(for_skill) for for_skill in (False, True))
    if cell.correction is None or low is None or low != high:
        return ""
    return f", {percent(low)}%,"


def _uncalibrated_warning(thresholds: Thresholds) -> str:
    """Return which limits an uncalibrated judge decides; empty for none."""
    limits = []
    if thresholds.min_lift is not None:
        limits.append("min_lift")
    if thresholds.min_mean_pass_rate:
        limits.append("min_mean_pass_rate")
    if not limits:
        return ""
    are = "is" if len(limits) == 1 else "are"
    return f"{' and '.join(limits)} {are} compared with what an uncalibrated judge found"
