"""The gate: a decision about each cell, reported like a test."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Literal

from pytest_upskill import stats
from pytest_upskill.cells.cell import Cell, CellVerdict
from pytest_upskill.cells.decision import Decision, compared, decision, no_decision, regression
from pytest_upskill.cells.thresholds import Thresholds
from pytest_upskill.cells.wording import JUDGED_PAST, cell_sentence, counted, percent

if TYPE_CHECKING:
    from pytest_upskill.cells.baseline_folder import Baselines
    from pytest_upskill.cells.comparison import Comparison

_SAID: Mapping[CellVerdict, str] = {
    "hurts": "the skill hurts",
    "no effect": "the skill has no effect",
    "too few runs": "too few runs to tell",
}
"""Texts of the verdicts that can fail a gate."""

NOT_MEASURED = 75
"""Exit code (EX_TEMPFAIL) if data is missing and nothing failed."""


ShownVerdict = CellVerdict | Literal["regression"]
"""A cell's verdict, or ``regression``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate(Decision):
    """Decision about one cell of answers."""

    kind: ClassVar[str] = "gate"

    cell: Cell
    warning: str = ""
    """What to know about the decision; empty for nothing."""

    @property
    def verdict(self) -> ShownVerdict:
        """Verdict in reports: ``regression`` takes precedence over the cell's verdict."""
        decided = self.outcome != "skipped"
        return "regression" if decided and self.regressed else self.cell.verdict

    @property
    def qualified_verdict(self) -> str:
        """The verdict, and that it is uncalibrated where a judge alone gave it."""
        alone = self.cell.uncalibrated and self.verdict in {"helps", "hurts"}
        return f"{self.verdict}, uncalibrated" if alone else self.verdict

    @property
    def details(self) -> list[str]:
        """Lines below the text of a regression: lift, cases, and advice."""
        if self.comparison is None or self.verdict != "regression":
            return []
        lift = f"lift: {cell_sentence(self.cell)}"
        past = [JUDGED_PAST] if self.cell.judged else []
        return [lift, *self.comparison.worse_cases, *past, self.comparison.next_step]


def decide_all(
    cells: Sequence[Cell], thresholds: Thresholds, baselines: Baselines | None
) -> list[Gate]:
    """Decide the gate of every cell.

    Args:
        cells: All cells of the session; p-values are adjusted for their number.
        thresholds: Thresholds from the options.
        baselines: Baselines to compare with; None for no comparison. A cell with trials of an old
            skill from a git ref is compared with those instead.
    """
    return [decide(cell, thresholds, past) for cell, past in compared(cells, baselines)]


def decide(cell: Cell, thresholds: Thresholds, comparison: Comparison | None = None) -> Gate:
    """Decide whether a cell meets the thresholds; with incomplete data there may be no decision.

    Args:
        cell: The cell.
        thresholds: Thresholds from the options; the case file's take precedence.
        comparison: Comparison with the cell's past, None for none.
    """
    if reason := cell.why_undecidable:
        return no_decision(Gate, cell, reason, misses_data=cell.missing_data_reason is not None)
    thresholds = thresholds.with_overrides(cell.gate)
    gate = decision(
        Gate,
        cell,
        _problems(cell, thresholds, comparison),
        cell_sentence(cell),
        comparison=comparison,
        missing=_count_missing(cell),
    )
    warning = "" if gate.outcome == "skipped" else _uncalibrated_warning(cell, thresholds)
    return replace(gate, warning=warning)


def compares_nothing(gates: Sequence[Decision]) -> str | None:
    """Return what the cells should be compared with if no comparison was possible, else None.

    A skill that is new or unchanged since a git ref needs no comparison. Where there are lifts,
    they decide: the first trigger cases of a project have no baseline yet.
    """
    lifts = [gate.comparison for gate in gates if isinstance(gate, Gate) and gate.comparison]
    found = lifts or [gate.comparison for gate in gates if gate.comparison]
    return found[0].base if found and all(each.lacking for each in found) else None


def _problems(
    cell: Cell, thresholds: Thresholds, comparison: Comparison | None
) -> Iterator[tuple[str, bool]]:
    """Yield the thresholds that the cell misses, or could miss because of missing runs.

    Yields:
        Each problem, and whether it is certain whatever the missing runs' results.
    """
    yield from regression(comparison, thresholds, "the skill")
    by_labels = "corrected " if cell.correction else ""
    least = thresholds.min_pass_rate
    if least is not None and cell.pass_rate_bounds is not None:
        low, high = cell.pass_rate_bounds
        if low < least:
            corrected = _corrected_rate(cell.pass_rate_bounds, by_labels)
            rate = f"{by_labels}pass rate with the skill{corrected}"
            yield f"{rate} is under {100 * least:g}%", high < least
    least = thresholds.min_lift
    if least is not None and cell.lift_bounds is not None:
        low, high = cell.lift_bounds
        if low < least:
            yield f"{by_labels}lift is under {100 * least:+g} points", high < least
    if cell.uncalibrated and "uncalibrated" in thresholds.fail_on:
        yield "it rests on an uncalibrated judge", True
    # What such a judge says against a skill may be its own mistake.
    doubtful = cell.uncalibrated and cell.verdict == "hurts"
    if cell.verdict.replace(" ", "-") in thresholds.fail_on and not doubtful:
        yield _SAID[cell.verdict], True


def _corrected_rate(rates: stats.Interval, by_labels: str) -> str:
    """Return a corrected rate in words; what a judge found stands in the sentence anyway."""
    return f", {percent(rates.low)}%," if by_labels and rates.low == rates.high else ""


def _uncalibrated_warning(cell: Cell, thresholds: Thresholds) -> str:
    if not cell.uncalibrated:
        return ""
    limits = []
    if thresholds.min_lift is not None:
        limits.append("min_lift")
    if thresholds.min_pass_rate:
        limits.append("min_pass_rate")
    if not limits:
        return ""
    are = "is" if len(limits) == 1 else "are"
    return f"{' and '.join(limits)} {are} compared with what an uncalibrated judge found"


def _count_missing(cell: Cell) -> str:
    """Return the number of missing runs; those of other cells matter through Holm's correction."""
    if not cell.missing:
        return "missing runs of other cells"
    return counted(cell.missing, "missing run")
