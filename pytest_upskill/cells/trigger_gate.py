"""The trigger gate: a decision about each trigger cell, reported like a test."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from pytest_upskill import stats
from pytest_upskill.cells.decision import Decision, regression, weighed
from pytest_upskill.cells.thresholds import Thresholds
from pytest_upskill.cells.trigger_cell import (
    NO_SKILL,
    Confusion,
    Rate,
    TriggerCell,
    anything_but,
)
from pytest_upskill.cells.wording import percent, runs

if TYPE_CHECKING:
    from pytest_upskill.cells.baseline_folder import Baselines
    from pytest_upskill.cells.trigger_comparison import TriggerComparison

BY_WORDS = "offline chooses by words in common: no model decided"


@dataclass(frozen=True, slots=True, kw_only=True)
class TriggerGate(Decision[TriggerCell, "TriggerComparison"]):
    """Decision about one trigger cell."""

    kind: ClassVar[str] = "trigger-gate"

    @property
    def regressed(self) -> bool:
        """Whether the right skill is chosen less often than before."""
        return self.comparison is not None and self.comparison.regressed

    @property
    def details(self) -> list[str]:
        """Lines below the text: wrong choices, and advice about a regression."""
        lines = [mistakes(self.cell)] if self.cell.mistakes else []
        if self.comparison is None or not self.regressed or self.outcome == "skipped":
            return lines
        return [*lines, *self.comparison.worse, self.comparison.next_step]


def decide_triggers(
    cells: Sequence[TriggerCell], thresholds: Thresholds, baselines: Baselines | None
) -> list[TriggerGate]:
    """Decide the gate of every trigger cell.

    Args:
        cells: All trigger cells of the session; p-values are adjusted for the number of compared
            ones, a family of their own.
        thresholds: Thresholds from the options; a case file's take precedence.
        baselines: Baselines of triggers to compare with; None for none.
    """
    comparisons = _compare(cells, baselines)
    return [
        _decide(cell, thresholds, comparison)
        for cell, comparison in zip(cells, comparisons, strict=True)
    ]


def no_trigger_decision(
    cell: TriggerCell, reason: str, *, misses_data: bool = False
) -> TriggerGate:
    """Return a skipped gate with the reason."""
    return TriggerGate(
        cell=cell, outcome="skipped", text=f"no decision: {reason}", misses_data=misses_data
    )


def trigger_sentence(cell: TriggerCell) -> str:
    """Return a cell's figures in one sentence."""
    parts = []
    if cell.recall is not None:
        parts.append(f"recall {rate_text(cell.recall)} on {_queries(cell.recall)} that should")
    if cell.false_triggers is not None:
        false = cell.false_triggers
        parts.append(f"false triggers {rate_text(false)} on {_queries(false)} that should not")
    if cell.precision is not None:
        parts.append(f"precision {percent(cell.precision)}%")
    return ", ".join(parts) or "no query has a valid run"


def rate_text(rate: Rate) -> str:
    """Return a rate with its interval: ``90% [70, 97]``."""
    return f"{percent(rate.estimate)}% [{percent(rate.low)}, {percent(rate.high)}]"


def mistakes(cell: TriggerCell) -> str:
    """Return which wrong skills were chosen: ``chose tsv instead of csv (3 runs)``."""
    return "; ".join(f"{_mistake(each)} ({runs(each.runs)})" for each in cell.mistakes)


def _mistake(each: Confusion) -> str:
    if each.wanted == anything_but(each.taken):
        return f"chose {each.taken} where it should not"
    taken, wanted = ("no skill" if name == NO_SKILL else name for name in (each.taken, each.wanted))
    return f"chose {taken} instead of {wanted}"


def queries_that_would_do(cell: TriggerCell, thresholds: Thresholds) -> list[str]:
    """Return a note for each rate whose interval is too wide to rely on."""
    notes = []
    least, most = limits(cell, thresholds)
    for rate, needed, kind in (
        (cell.recall, _needed(cell.recall, least=least), "that should trigger it"),
        (cell.false_triggers, _needed(cell.false_triggers, most=most), "that should not"),
    ):
        if rate is not None and needed is not None and needed > rate.queries:
            tell = "tells" if rate.queries == 1 else "tell"
            notes.append(f"{_queries(rate)} {kind} {tell} little: about {needed} would be enough")
    return notes


def limits(cell: TriggerCell, thresholds: Thresholds) -> tuple[float | None, float | None]:
    """Return the least recall and the most false triggers of a cell; None for no limit."""
    least, most = cell.gate.min_recall, cell.gate.max_false_triggers
    return (
        thresholds.min_recall if least is None else least,
        thresholds.max_false_triggers if most is None else most,
    )


def _decide(
    cell: TriggerCell, thresholds: Thresholds, comparison: TriggerComparison | None
) -> TriggerGate:
    if cell.by_words:
        return no_trigger_decision(cell, BY_WORDS)
    if (reason := cell.undecidable) is not None:
        return no_trigger_decision(cell, reason, misses_data=bool(cell.missing))
    problems, undecided = weighed(_problems(cell, thresholds, comparison))
    if undecided:
        missing = f"missing data: missing runs could decide: {undecided}"
        gate = no_trigger_decision(cell, missing, misses_data=True)
        return replace(gate, comparison=comparison)
    sentence = trigger_sentence(cell)
    return TriggerGate(
        cell=cell,
        outcome="failed" if problems else "passed",
        text=f"{cell.name}: {problems} ({sentence})" if problems else f"{cell.name}: {sentence}",
        comparison=comparison,
    )


def _problems(
    cell: TriggerCell, thresholds: Thresholds, comparison: TriggerComparison | None
) -> Iterator[tuple[str, bool]]:
    """Yield the limits that the cell misses, or could miss because of missing runs.

    Yields:
        Each problem, and whether it is certain whatever the missing runs' results.
    """
    yield from regression(comparison, thresholds, "the choice")
    least, most = limits(cell, thresholds)
    if least is not None and (bounds := cell.recall_bounds) and bounds.low < least:
        yield f"recall is under {100 * least:g}%", bounds.high < least
    if most is not None and (bounds := cell.false_trigger_bounds) and bounds.high > most:
        yield f"false triggers are over {100 * most:g}%", bounds.low > most


def _compare(
    cells: Sequence[TriggerCell], baselines: Baselines | None
) -> list[TriggerComparison | None]:
    if baselines is None and not any(cell.ref for cell in cells):
        return [None] * len(cells)
    # Imported here: most sessions compare nothing.
    from pytest_upskill.cells.trigger_comparison import compare_triggers

    return compare_triggers(cells, baselines)


def _needed(
    rate: Rate | None, *, least: float | None = None, most: float | None = None
) -> int | None:
    return None if rate is None else stats.queries_needed(rate.estimate, least=least, most=most)


def _queries(rate: Rate) -> str:
    return "1 query" if rate.queries == 1 else f"{rate.queries} queries"
