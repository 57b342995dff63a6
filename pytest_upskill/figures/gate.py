"""The gate: a decision about each cell, reported like a test."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Generic, Literal, NamedTuple, TypeVar

from pytest_upskill.figures.baseline import Baselines
from pytest_upskill.figures.cell import Cell, CellVerdict
from pytest_upskill.figures.comparison import Comparison, compare
from pytest_upskill.figures.thresholds import Thresholds
from pytest_upskill.figures.trigger_cell import TriggerCell
from pytest_upskill.figures.wording import (
    JUDGED_PAST,
    cell_sentence,
    mistakes,
    percent,
    trigger_sentence,
)

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


C = TypeVar("C", bound=Cell | TriggerCell)
C_co = TypeVar("C_co", bound=Cell | TriggerCell, covariant=True)


@dataclass(frozen=True, kw_only=True)
class CellGate(Generic[C_co]):
    """Decision about one cell: a lift, or how often a skill is chosen."""

    cell: C_co
    outcome: Literal["passed", "failed", "skipped"]
    text: str
    """Complete sentence, one line."""
    comparison: Comparison | None = None
    """Comparison with the baseline or the git ref; None for none."""
    misses_data: bool = False
    """Whether missing runs or cut answers prevent a decision."""
    warning: str = ""
    """What to know about the decision; empty for nothing."""

    @property
    def nodeid(self) -> str:
        """Node id, such as ``path::gate[model]``."""
        return f"{self.cell.path}::{self.name}"

    @property
    def name(self) -> str:
        """The part of the node id after the path."""
        return f"{self.cell.gate_kind}[{self.cell.model}]"

    @property
    def is_red(self) -> bool:
        """Whether the gate or one of the cell's cases failed."""
        return self.outcome == "failed" or bool(self.cell.failed_cases)

    @property
    def regressed(self) -> bool:
        """Whether the cell has become worse since the baseline or the git ref."""
        return self.comparison is not None and self.comparison.regressed

    @property
    def shows_regression(self) -> bool:
        """Whether reports show a regression in place of the verdict."""
        return self.outcome != "skipped" and self.regressed

    @property
    def verdict(self: Gate) -> ShownVerdict:
        """Verdict in reports: ``regression`` takes precedence over the cell's verdict."""
        return "regression" if self.shows_regression else self.cell.verdict

    @property
    def qualified_verdict(self: Gate) -> str:
        """The verdict, marked as uncalibrated if it rests on a judge that no labels correct."""
        if self.cell.uncalibrated and self.verdict in {"helps", "hurts"}:
            return f"{self.verdict}, uncalibrated"
        return self.verdict

    @property
    def details(self) -> list[str]:
        """Lines below the text: of a regression figures and cases; wrong choices; advice."""
        cell, comparison = self.cell, self.comparison
        lines = [mistakes(cell)] if isinstance(cell, TriggerCell) and cell.mistakes else []
        if comparison is None or not self.shows_regression:
            return [*lines, _next_step(cell)] if self.outcome == "failed" else lines
        past = []
        if isinstance(cell, Cell):
            lines = [f"lift: {cell_sentence(cell)}"]
            past = [JUDGED_PAST] if cell.judged else []
        return [*lines, *comparison.worse_cases, *past, comparison.next_step]

    @property
    def report(self) -> str:
        """Text, details and notes, one per line."""
        notes = () if self.comparison is None else self.comparison.notes
        return "\n".join([self.text, *self.details, *notes])


Gate = CellGate[Cell]
TriggerGate = CellGate[TriggerCell]


class Problem(NamedTuple):
    """A threshold that a cell misses, or could miss because of open runs."""

    text: str
    is_certain: bool
    """Whether the cell misses it whatever the results of the open runs."""


def decide_gates(
    cells: Sequence[C], thresholds: Thresholds, baselines: Baselines | None
) -> list[CellGate[C]]:
    """Decide the gate of every cell.

    Args:
        cells: All cells of the session of one kind; p-values are adjusted for their number.
        thresholds: Thresholds from the options; a case file's take precedence.
        baselines: Baselines to compare with; None for no comparison. A cell with trials of an old
            skill from a git ref is compared with those instead.
    """
    return [
        decide_gate(cell, thresholds, past) for cell, past in _with_comparisons(cells, baselines)
    ]


def decide_gate(
    cell: C, thresholds: Thresholds, comparison: Comparison | None = None
) -> CellGate[C]:
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
    if isinstance(cell, Cell):
        sentence, warning = cell_sentence(cell), _uncalibrated_warning(cell, thresholds)
        problems = [*_regression(comparison, thresholds, "the skill"), *_problems(cell, thresholds)]
    else:
        sentence, warning = trigger_sentence(cell), ""
        problems = [
            *_regression(comparison, thresholds, "the choice"),
            *_trigger_problems(cell, thresholds),
        ]
    certain = "; ".join(problem.text for problem in problems if problem.is_certain)
    if problems and not certain:
        possible = "; ".join(problem.text for problem in problems)
        # Those of other cells matter through Holm's correction.
        open_runs = cell.open_runs or "missing runs or cut answers of other cells"
        gate = skipped_gate(cell, f"missing data: {open_runs} could decide: {possible}")
        return replace(gate, misses_data=True, comparison=comparison)
    gate = CellGate(
        cell=cell,
        outcome="failed" if certain else "passed",
        text=f"{cell.name}: {certain or sentence}",
        comparison=comparison,
        warning=warning,
    )
    # A failed gate has the figures too, unless its details do.
    if not certain or any(sentence in line for line in gate.details):
        return gate
    return replace(gate, text=f"{gate.text} ({sentence})")


def skipped_gate(cell: C, reason: str) -> CellGate[C]:
    """Return a gate that decides nothing, with the reason."""
    text = f"no decision: {reason}"
    return CellGate(cell=cell, outcome="skipped", text=text, misses_data=cell.misses_data)


def _next_step(cell: Cell | TriggerCell) -> str:
    """Return advice about a gate that failed without a regression."""
    if isinstance(cell, TriggerCell):
        return (
            "next: say in the description when to use the skill and when not to, in the words of "
            "these queries, or change the gate"
        )
    if cell.verdict == "hurts":
        return (
            "next: read the answers that fail only with the skill, and correct or remove what "
            "misled the model"
        )
    return "next: add to the skill what the cases that fail with it ask for, or change the gate"


def _problems(cell: Cell, thresholds: Thresholds) -> Iterator[Problem]:
    """Yield the thresholds that the cell misses, or could miss because of open runs."""
    corrected = "corrected " if cell.correction else ""
    min_pass_rate, min_lift = thresholds.min_mean_pass_rate, thresholds.min_lift
    rate = f"{corrected}pass rate with the skill{_corrected_rate(cell)}"
    yield from _too_low(cell.pass_rate_if, min_pass_rate, f"{rate} is under {{:g}}%")
    yield from _too_low(cell.lift_if, min_lift, f"{corrected}lift is under {{:+g}} points")
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


def _uncalibrated_warning(cell: Cell, thresholds: Thresholds) -> str:
    """Return which limits an uncalibrated judge decides; empty for none."""
    if not cell.uncalibrated:
        return ""
    limits = []
    if thresholds.min_lift is not None:
        limits.append("min_lift")
    if thresholds.min_mean_pass_rate:
        limits.append("min_mean_pass_rate")
    if not limits:
        return ""
    are = "is" if len(limits) == 1 else "are"
    return f"{' and '.join(limits)} {are} compared with what an uncalibrated judge found"


def _trigger_problems(cell: TriggerCell, thresholds: Thresholds) -> Iterator[Problem]:
    """Yield the limits that the cell misses, or could miss because of open runs."""
    yield from _too_low(cell.recall_if, thresholds.min_recall, "recall is under {:g}%")
    most = thresholds.max_false_triggers
    low, high = cell.false_triggers_if(False), cell.false_triggers_if(True)
    if most is not None and low is not None and high is not None and high > most:
        yield Problem(f"false triggers are over {100 * most:g}%", is_certain=low > most)


def _regression(
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


def _too_low(
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


def _with_comparisons(
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
    return zip(cells, compare(cells, baselines), strict=True)
