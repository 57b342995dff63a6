"""The gate: a decision for each cell that dashboard, exit code and reader all see."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from pytest_upskill.cells.cell import Cell, CellVerdict
from pytest_upskill.cells.thresholds import Thresholds
from pytest_upskill.cells.wording import cell_sentence

if TYPE_CHECKING:
    from pytest_upskill.cells.baseline import Baseline
    from pytest_upskill.cells.baseline_folder import Baselines
    from pytest_upskill.cells.comparison import Comparison

_SAID: Mapping[CellVerdict, str] = {
    "hurts": "the skill hurts",
    "no effect": "the skill has no effect",
    "too few runs": "too few runs to tell",
}
"""Verdicts that a cell can fail on."""

NOT_MEASURED = 75
"""Exit code of a run that is not red but could not measure everything: EX_TEMPFAIL."""


ShownVerdict = CellVerdict | Literal["regression"]
"""A cell's verdict, or that the skill has become worse."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """The decision about one cell."""

    cell: Cell
    outcome: Literal["passed", "failed", "skipped"]
    text: str
    """One line that stands alone."""
    comparison: Comparison | None = None
    """With what the cell was before, where that was asked for."""
    misses_data: bool = False
    """Whether there is no decision because runs are missing."""

    @property
    def nodeid(self) -> str:
        """``path::gate[model]``."""
        return f"{self.cell.path}::gate[{self.cell.model}]"

    @property
    def verdict(self) -> ShownVerdict:
        """What reports show: a regression is one, whatever the lift still is."""
        decided = self.outcome != "skipped" and self.comparison is not None
        if decided and self.comparison is not None and self.comparison.regressed:
            return "regression"
        return self.cell.verdict

    @property
    def details(self) -> list[str]:
        """What stands below the text of a regression: the lift, the cases, and the next step."""
        if self.comparison is None or self.verdict != "regression":
            return []
        lift = f"lift: {cell_sentence(self.cell)}"
        return [lift, *self.comparison.worse, self.comparison.next_step]

    @property
    def report(self) -> str:
        """The text, and below it what a reader of a failure asks next."""
        notes = () if self.comparison is None else self.comparison.notes
        return "\n".join([self.text, *self.details, *notes])


def decide_all(
    cells: Sequence[Cell], thresholds: Thresholds, baselines: Baselines | None
) -> list[Gate]:
    """Decide about every cell.

    Args:
        cells: All that were measured together.
        thresholds: What they are held against.
        baselines: What they were before; None where that was not asked for. A cell that knows
            its own past, from a git ref, is compared with that.
    """
    comparisons = _compare(cells, baselines)
    return [
        decide(cell, thresholds, comparison)
        for cell, comparison in zip(cells, comparisons, strict=True)
    ]


def decide(cell: Cell, thresholds: Thresholds, comparison: Comparison | None = None) -> Gate:
    """Hold a cell against the thresholds; on part of its data there is no decision."""
    reason = undecidable(cell)
    if reason is not None:
        return no_decision(cell, reason)
    found = dict(_problems(cell, thresholds, comparison))
    problems = "; ".join(problem for problem, sure in found.items() if sure)
    if found and not problems:
        open_ = no_decision(
            cell, f"missing data: {_missing(cell)} could decide: {'; '.join(found)}"
        )
        return replace(open_, comparison=comparison, misses_data=True)
    gate = Gate(
        cell=cell,
        outcome="failed" if problems else "passed",
        text=f"{cell.name}: {problems or cell_sentence(cell)}",
        comparison=comparison,
    )
    if problems and not gate.details:
        return replace(gate, text=f"{gate.text} ({cell_sentence(cell)})")
    return gate


def no_decision(cell: Cell, reason: str) -> Gate:
    """Leave a cell without a decision."""
    return Gate(
        cell=cell,
        outcome="skipped",
        text=f"no decision: {reason}",
        misses_data=cell.missing_data is not None,
    )


def compares_nothing(gates: Sequence[Gate]) -> str | None:
    """Name what cells were to be compared with, if none was though one should have been.

    A skill that did not change since a git ref, or is new since, needs no comparison.
    """
    comparisons = [gate.comparison for gate in gates if gate.comparison is not None]
    if comparisons and all(comparison.lacking for comparison in comparisons):
        return comparisons[0].base
    return None


def undecidable(cell: Cell) -> str | None:
    """Say why nothing can be decided about a cell, None where it can."""
    if len(cell.trials) != cell.planned:
        return f"{len(cell.trials)} of {cell.planned} trials ran"
    if cell.missing_data:
        return f"missing data: {cell.missing_data}"
    if cell.asymmetric:
        return f"the arms of {cell.asymmetric[0]!r} were sent different prompts"
    return None


def _compare(cells: Sequence[Cell], baselines: Baselines | None) -> list[Comparison | None]:
    """Compare each cell that can be decided about with what it was."""
    if baselines is None and not any(cell.ref for cell in cells):
        return [None] * len(cells)
    # Only here: most runs compare nothing.
    from pytest_upskill.cells.baseline_folder import key_of
    from pytest_upskill.cells.comparison import adjust, against_baseline, against_ref

    stored = baselines.of([key_of(cell) for cell in cells]) if baselines else [None] * len(cells)

    def compared(cell: Cell, baseline: Baseline | None) -> Comparison | None:
        if undecidable(cell):
            return None
        if cell.ref:
            return against_ref(cell)
        return None if baselines is None else against_baseline(cell, baseline)

    return adjust([compared(*each) for each in zip(cells, stored, strict=True)])


def _problems(
    cell: Cell, thresholds: Thresholds, comparison: Comparison | None
) -> Iterator[tuple[str, bool]]:
    """Say what is or could be under its threshold; the case file's ``gate`` precedes the options.

    Returns:
        Each problem, and whether it stands whatever the missing runs had brought.
    """
    watched = comparison is not None and "regression" in thresholds.fail_on
    if comparison is not None and watched and comparison.would_regress(worse=True):
        yield f"the skill {comparison.headline}", comparison.would_regress(worse=False)
    least = _either(cell.gate.min_pass_rate, thresholds.min_pass_rate)
    if least is not None and cell.pass_rate_bounds is not None:
        low, high = cell.pass_rate_bounds
        if low < least:
            yield f"pass rate with the skill is under {100 * least:g}%", high < least
    least = _either(cell.gate.min_lift, thresholds.min_lift)
    if least is not None and cell.lift_bounds is not None:
        low, high = cell.lift_bounds
        if low < least:
            yield f"lift is under {100 * least:+g} points", high < least
    if cell.verdict.replace(" ", "-") in thresholds.fail_on:
        yield _SAID[cell.verdict], True


def _missing(cell: Cell) -> str:
    """Write which runs are missing; those of other cells matter through Holm's correction."""
    if not cell.missing:
        return "missing runs of other cells"
    return "1 missing run" if cell.missing == 1 else f"{cell.missing} missing runs"


def _either(of_file: float | None, of_options: float | None) -> float | None:
    return of_options if of_file is None else of_file
