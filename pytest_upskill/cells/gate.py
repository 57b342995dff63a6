"""The gate: a decision about each cell, reported like a test."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pytest_upskill import stats
from pytest_upskill.cells.cell import Cell, CellVerdict
from pytest_upskill.cells.decision import Decision, regression, weighed
from pytest_upskill.cells.thresholds import Thresholds
from pytest_upskill.cells.wording import cell_sentence, judged_past, percent

if TYPE_CHECKING:
    from pytest_upskill.cells.baseline import Baseline
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
class Gate(Decision[Cell, "Comparison"]):
    """Decision about one cell of answers."""

    kind: ClassVar[str] = "gate"

    warning: str = ""
    """What to know about a decision that was made nevertheless; empty for nothing."""

    @property
    def verdict(self) -> ShownVerdict:
        """Verdict in reports: ``regression`` takes precedence over the cell's verdict."""
        decided = self.outcome != "skipped" and self.comparison is not None
        if decided and self.comparison is not None and self.comparison.regressed:
            return "regression"
        return self.cell.verdict

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
        past = [judged_past()] * bool(self.cell.judged)
        return [lift, *self.comparison.worse, *past, self.comparison.next_step]


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
    comparisons = _compare(cells, baselines)
    return [
        decide(cell, thresholds, comparison)
        for cell, comparison in zip(cells, comparisons, strict=True)
    ]


def decide(cell: Cell, thresholds: Thresholds, comparison: Comparison | None = None) -> Gate:
    """Decide whether a cell meets the thresholds; with incomplete data there may be no decision.

    Args:
        cell: The cell.
        thresholds: Thresholds from the options; the case file's take precedence.
        comparison: Comparison with the cell's past, None for none.
    """
    reason = undecidable(cell)
    if reason is not None:
        return no_decision(cell, reason)
    problems, undecided = weighed(_problems(cell, thresholds, comparison))
    if undecided:
        reason = f"missing data: {_missing(cell)} could decide: {undecided}"
        return replace(no_decision(cell, reason), comparison=comparison, misses_data=True)
    gate = Gate(
        cell=cell,
        outcome="failed" if problems else "passed",
        text=f"{cell.name}: {problems or cell_sentence(cell)}",
        comparison=comparison,
        warning=_warning(cell, thresholds),
    )
    if problems and not gate.details:
        return replace(gate, text=f"{gate.text} ({cell_sentence(cell)})")
    return gate


def no_decision(cell: Cell, reason: str) -> Gate:
    """Return a skipped gate with the reason."""
    return Gate(
        cell=cell,
        outcome="skipped",
        text=f"no decision: {reason}",
        misses_data=cell.missing_data is not None,
    )


def compares_nothing(gates: Sequence[Decision[Any, Any]]) -> str | None:
    """Return what the cells should be compared with if no comparison was possible, else None.

    A skill that is new or unchanged since a git ref needs no comparison. Where there are lifts,
    they decide: the first trigger cases of a project have no baseline yet.
    """
    lifts = [gate.comparison for gate in gates if isinstance(gate, Gate) and gate.comparison]
    found: list[Any] = lifts or [gate.comparison for gate in gates if gate.comparison]
    if found and all(comparison.lacking for comparison in found):
        base: str = found[0].base
        return base
    return None


def undecidable(cell: Cell) -> str | None:
    """Return why no decision about a cell is possible, None if one is."""
    if len(cell.trials) != cell.planned:
        return f"{len(cell.trials)} of {cell.planned} trials ran"
    if cell.missing_data:
        return f"missing data: {cell.missing_data}"
    if cell.asymmetric:
        return f"the arms of {cell.asymmetric[0]!r} were sent different prompts"
    return None


def _compare(cells: Sequence[Cell], baselines: Baselines | None) -> list[Comparison | None]:
    """Return the comparison of each cell with its past, None without a decision or a past."""
    if baselines is None and not any(cell.ref for cell in cells):
        return [None] * len(cells)
    # Imported here: most sessions compare nothing.
    from pytest_upskill.cells.baseline_folder import key_of
    from pytest_upskill.cells.comparison import adjust
    from pytest_upskill.cells.past import against_baseline, against_ref

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
    """Yield the thresholds that the cell misses, or could miss because of missing runs.

    Yields:
        Each problem, and whether it is certain whatever the missing runs' results.
    """
    yield from regression(comparison, thresholds, "the skill")
    by_labels = "corrected " if cell.correction else ""
    least = _either(cell.gate.min_pass_rate, thresholds.min_pass_rate)
    if least is not None and cell.pass_rate_bounds is not None:
        low, high = cell.pass_rate_bounds
        if low < least:
            rate = f"{by_labels}pass rate with the skill{_shown(cell.pass_rate_bounds, by_labels)}"
            yield f"{rate} is under {100 * least:g}%", high < least
    least = _either(cell.gate.min_lift, thresholds.min_lift)
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


def _shown(rates: stats.Interval, by_labels: str) -> str:
    """Return a corrected rate in words; what a judge found stands in the sentence anyway."""
    return f", {percent(rates.low)}%," if by_labels and rates.low == rates.high else ""


def _warning(cell: Cell, thresholds: Thresholds) -> str:
    if not cell.uncalibrated:
        return ""
    lift = _either(cell.gate.min_lift, thresholds.min_lift)
    rate = _either(cell.gate.min_pass_rate, thresholds.min_pass_rate)
    compared = ["min_lift"] * (lift is not None) + ["min_pass_rate"] * bool(rate)
    if not compared:
        return ""
    are = "is" if len(compared) == 1 else "are"
    return f"{' and '.join(compared)} {are} compared with what an uncalibrated judge found"


def _missing(cell: Cell) -> str:
    """Return the number of missing runs; those of other cells matter through Holm's correction."""
    if not cell.missing:
        return "missing runs of other cells"
    return "1 missing run" if cell.missing == 1 else f"{cell.missing} missing runs"


def _either(of_file: float | None, of_options: float | None) -> float | None:
    return of_options if of_file is None else of_file
