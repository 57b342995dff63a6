"""The gate: a decision about each cell, reported like a test."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from pytest_upskill.figures.baseline import Baselines
from pytest_upskill.figures.cell import Cell
from pytest_upskill.figures.comparison import Comparison, compare
from pytest_upskill.figures.lift import CellVerdict
from pytest_upskill.figures.thresholds import Problem, Thresholds

NOT_MEASURED = 75
"""Exit code (EX_TEMPFAIL) if data is missing and nothing failed."""


ShownVerdict = CellVerdict | Literal["regression"]
"""A cell's verdict, or ``regression``."""


@dataclass(frozen=True, kw_only=True)
class Gate:
    """Decision about one cell."""

    cell: Cell
    outcome: Literal["passed", "failed", "skipped"]
    text: str
    """Complete sentence, one line."""
    comparison: Comparison | None = None
    """Comparison with the baseline or the git ref; None for none."""
    misses_data: bool = False
    """Whether missing runs or cut answers prevent a decision."""

    @property
    def nodeid(self) -> str:
        """Node id, such as ``path::gate[model]``."""
        return f"{self.cell.path}::{self.name}"

    @property
    def name(self) -> str:
        """The part of the node id after the path."""
        return f"{self.cell.measure.gate_name}[{self.cell.model}]"

    @property
    def is_red(self) -> bool:
        """Whether the gate or one of the cell's cases failed."""
        return self.outcome == "failed" or bool(self.cell.failed_cases)

    @property
    def regressed(self) -> bool:
        """Whether reports show a regression in place of the verdict."""
        return (
            self.outcome != "skipped" and self.comparison is not None and self.comparison.regressed
        )

    @property
    def verdict(self) -> ShownVerdict:
        """Verdict in reports: ``regression`` takes precedence over that of the lift."""
        return "regression" if self.regressed else self.cell.lift.verdict

    @property
    def qualified_verdict(self) -> str:
        """The verdict, marked as uncalibrated if it rests on a judge that no labels correct."""
        if self.cell.lift.uncalibrated and self.verdict in {"helps", "hurts"}:
            return f"{self.verdict}, uncalibrated"
        return self.verdict

    @property
    def details(self) -> list[str]:
        """Lines below the text: of a regression figures and cases; wrong choices; advice."""
        measure, past = self.cell.measure, self.comparison
        lines = measure.details(regressed=self.regressed)
        if past is not None and self.regressed:
            return [*lines, *past.worse_cases, past.next_step]
        return [*lines, measure.next_step] if self.outcome == "failed" else lines

    @property
    def report(self) -> str:
        """Text and details, one per line."""
        return "\n".join([self.text, *self.details])


def decide_gates(
    cells: Sequence[Cell], thresholds: Thresholds, baselines: Baselines | None
) -> list[Gate]:
    """Decide the gate of every cell.

    Args:
        cells: All cells of the session; p-values are adjusted for the number of a kind.
        thresholds: Thresholds from the options; a case file's take precedence.
        baselines: Baselines to compare with; None for no comparison. A cell with trials of an old
            skill from a git ref is compared with those instead.
    """
    pairs = zip(cells, compare(cells, baselines), strict=True)
    return [decide_gate(cell, thresholds, past) for cell, past in pairs]


def decide_gate(cell: Cell, thresholds: Thresholds, comparison: Comparison | None = None) -> Gate:
    """Decide whether a cell meets the thresholds.

    The gate fails if a problem is certain, and decides nothing if one is only possible.

    Args:
        cell: The cell.
        thresholds: Thresholds from the options; the case file's take precedence.
        comparison: Comparison with the cell's past, None for none.
    """
    if reason := cell.why_undecidable:
        return skipped_gate(cell, reason)
    thresholds = thresholds.with_overrides(cell.gate)
    measure = cell.measure
    problems = [
        *_regression(comparison, thresholds, measure.subject),
        *_changed_cases(cell, thresholds),
        *measure.problems(thresholds),
    ]
    certain = "; ".join(problem.text for problem in problems if problem.is_certain)
    if problems and not certain:
        possible = "; ".join(problem.text for problem in problems)
        # Those of other cells matter through Holm's correction.
        open_runs = cell.open_runs or "missing runs or cut answers of other cells"
        gate = skipped_gate(cell, f"missing data: {open_runs} could decide: {possible}")
        return replace(gate, misses_data=True, comparison=comparison)
    gate = Gate(
        cell=cell,
        outcome="failed" if certain else "passed",
        text=f"{cell.name}: {certain or measure.sentence}",
        comparison=comparison,
    )
    # A failed gate has the figures too, unless its details do.
    if not certain or any(measure.sentence in line for line in gate.details):
        return gate
    return replace(gate, text=f"{gate.text} ({measure.sentence})")


def skipped_gate(cell: Cell, reason: str) -> Gate:
    """Return a gate that decides nothing, with the reason."""
    text = f"gate not decided: {reason}"
    return Gate(cell=cell, outcome="skipped", text=text, misses_data=cell.measure.misses_data)


def _changed_cases(cell: Cell, thresholds: Thresholds) -> Iterator[Problem]:
    """Yield the problem that cases were removed or changed, so that a skill may look better."""
    if "cases" in thresholds.fail_on and cell.case_changes:
        yield Problem(cell.case_changes, is_certain=True)


def _regression(
    comparison: Comparison | None, thresholds: Thresholds, subject: str
) -> Iterator[Problem]:
    """Yield the problem that a cell has become worse, or could have because of open runs."""
    if comparison is None or "regression" not in thresholds.fail_on:
        return
    if comparison.regressed or comparison.undecided:
        yield Problem(f"{subject} {comparison.headline}", is_certain=comparison.regressed)
