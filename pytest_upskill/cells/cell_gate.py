"""What the gate and the trigger gate have in common: how problems decide them, and the report."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple, TypeVar

from pytest_upskill.cells.thresholds import Thresholds
from pytest_upskill.cells.trial_group import TrialGroup

if TYPE_CHECKING:
    from pytest_upskill.cells.baseline_folder import Baselines
    from pytest_upskill.cells.cell import Cell
    from pytest_upskill.cells.comparison import Comparison
    from pytest_upskill.cells.trigger_cell import TriggerCell


@dataclass(frozen=True, slots=True, kw_only=True)
class CellGate:
    """Decision about one cell."""

    kind: ClassVar[str]
    """The first word of the gate's name."""

    cell: TrialGroup
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
        return f"{self.kind}[{self.cell.model}]"

    @property
    def is_red(self) -> bool:
        """Whether the gate or one of the cell's cases failed."""
        return self.outcome == "failed" or bool(self.cell.failed_cases)

    @property
    def regressed(self) -> bool:
        """Whether the cell has become worse since the baseline or the git ref."""
        return self.comparison is not None and self.comparison.regressed

    @property
    def details(self) -> list[str]:
        """Lines below the text."""
        return []

    @property
    def report(self) -> str:
        """Text, details and notes, one per line."""
        notes = () if self.comparison is None else self.comparison.notes
        return "\n".join([self.text, *self.details, *notes])


G = TypeVar("G", bound=CellGate)
C = TypeVar("C", "Cell", "TriggerCell")


class Problem(NamedTuple):
    """A threshold that a cell misses, or could miss because of open runs."""

    text: str
    is_certain: bool
    """Whether the cell misses it whatever the results of the open runs."""


def skipped_gate(kind: type[G], cell: TrialGroup, reason: str, *, misses_data: bool = False) -> G:
    """Return a gate that decides nothing, with the reason."""
    text = f"no decision: {reason}"
    return kind(cell=cell, outcome="skipped", text=text, misses_data=misses_data)


def make_gate(
    kind: type[G],
    cell: TrialGroup,
    problems: Iterable[Problem],
    sentence: str,
    *,
    comparison: Comparison | None,
) -> G:
    """Return a gate that fails if a problem is certain, and is skipped if one is only possible.

    Args:
        kind: Class of the gate.
        cell: The cell.
        problems: Thresholds that the cell misses or could miss.
        sentence: The cell's figures.
        comparison: Comparison with the cell's past, None for none.
    """
    problems = list(problems)
    certain = "; ".join(problem.text for problem in problems if problem.is_certain)
    if problems and not certain:
        possible = "; ".join(problem.text for problem in problems)
        # Those of other cells matter through Holm's correction.
        open_runs = cell.open_runs or "missing runs or cut answers of other cells"
        reason = f"missing data: {open_runs} could decide: {possible}"
        return replace(skipped_gate(kind, cell, reason, misses_data=True), comparison=comparison)
    gate = kind(
        cell=cell,
        outcome="failed" if certain else "passed",
        text=f"{cell.name}: {certain or sentence}",
        comparison=comparison,
    )
    # A failed gate has the figures too, unless its details do.
    if not certain or any(sentence in line for line in gate.details):
        return gate
    return replace(gate, text=f"{gate.text} ({sentence})")


def regression_problems(
    comparison: Comparison | None, thresholds: Thresholds, subject: str
) -> Iterator[Problem]:
    """Yield the problem that a cell has become worse, or could have because of open runs.

    Args:
        comparison: Comparison with the cell's past, None for none.
        thresholds: Thresholds of the gate.
        subject: What has become worse.
    """
    if comparison is None or "regression" not in thresholds.fail_on:
        return
    if comparison.regressed or comparison.undecided:
        yield Problem(f"{subject} {comparison.headline}", is_certain=comparison.regressed)


def too_low(
    rate_if: Callable[[bool], float | None], limit: float | None, text: str
) -> Iterator[Problem]:
    """Yield the problem that a figure is under its limit, or could be because of open runs.

    Args:
        rate_if: Returns the figure if all open runs were for the skill, or against it.
        limit: The least allowed; None for none.
        text: The problem, with a place for the limit in percent.
    """
    low, high = rate_if(False), rate_if(True)
    if limit is not None and low is not None and high is not None and low < limit:
        yield Problem(text.format(100 * limit), is_certain=high < limit)


def with_comparisons(
    cells: Sequence[C], baselines: Baselines | None
) -> Iterable[tuple[C, Comparison | None]]:
    """Return the cells, each with the comparison with its past; None for a cell without one.

    Args:
        cells: All cells of one kind; p-values are adjusted for the number of those compared.
        baselines: Baselines to compare with; None for none. A cell with trials of an old skill from
            a git ref is compared with those instead.
    """
    if baselines is None and not any(cell.ref for cell in cells):
        return [(cell, None) for cell in cells]
    # Imported here: most sessions compare nothing.
    from pytest_upskill.cells.past import compare

    return zip(cells, compare(cells, baselines), strict=True)
