"""The trigger gate: a decision about each trigger cell, reported like a test."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from pytest_upskill import stats
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
from pytest_upskill.cells.trigger_cell import (
    NO_SKILL,
    Confusion,
    Rate,
    TriggerCell,
    any_except,
)
from pytest_upskill.cells.wording import percent
from pytest_upskill.sanitize.plural import counted

if TYPE_CHECKING:
    from pytest_upskill.cells.baseline_folder import Baselines
    from pytest_upskill.cells.comparison import Comparison


_NEXT_STEP = (
    "next: say in the description when to use the skill and when not to, in the words of these "
    "queries, or change the gate"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TriggerGate(CellGate):
    """Decision about one trigger cell."""

    kind: ClassVar[str] = "trigger-gate"

    cell: TriggerCell

    @property
    def details(self) -> list[str]:
        """Lines below the text: wrong choices, and advice if the gate failed."""
        lines = [mistakes(self.cell)] if self.cell.mistakes else []
        if self.comparison is None or not self.regressed or self.outcome == "skipped":
            return [*lines, _NEXT_STEP] if self.outcome == "failed" else lines
        return [*lines, *self.comparison.worse_cases, self.comparison.next_step]


def decide_triggers(
    cells: Sequence[TriggerCell], thresholds: Thresholds, baselines: Baselines | None
) -> list[TriggerGate]:
    """Decide the gate of every trigger cell.

    Args:
        cells: All trigger cells of the session; p-values are adjusted for the number of those
            that are compared, separately from the lifts.
        thresholds: Thresholds from the options; a case file's take precedence.
        baselines: Baselines of triggers to compare with; None for none.
    """
    return [
        _decide_gate(cell, thresholds, past) for cell, past in with_comparisons(cells, baselines)
    ]


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


def share_text(share: float | None) -> str:
    """Return a share in percent; ``n/a`` if it is unknown."""
    return "n/a" if share is None else f"{percent(share)}%"


def rate_text(rate: Rate | None) -> str:
    """Return a rate with its interval, ``90% [70, 97]``; ``n/a`` if it is unknown."""
    if rate is None:
        return "n/a"
    return f"{percent(rate.estimate)}% [{percent(rate.low)}, {percent(rate.high)}]"


def mistakes(cell: TriggerCell) -> str:
    """Return which wrong skills were chosen: ``chose tsv instead of csv (3 runs)``."""
    return "; ".join(
        f"{_mistake(confusion)} ({counted(confusion.runs, 'run')})" for confusion in cell.mistakes
    )


def _mistake(confusion: Confusion) -> str:
    if confusion.wanted == any_except(confusion.taken):
        return f"chose {confusion.taken} where it should not"
    taken, wanted = (
        "no skill" if name == NO_SKILL else name for name in (confusion.taken, confusion.wanted)
    )
    return f"chose {taken} instead of {wanted}"


def too_few_queries_notes(cell: TriggerCell, thresholds: Thresholds) -> list[str]:
    """Return a note for each rate whose interval is too wide to rely on."""
    notes = []
    limits = thresholds.with_overrides(cell.gate)
    for rate, least, most, kind in (
        (cell.recall, limits.min_recall, None, "that should trigger it"),
        (cell.false_triggers, None, limits.max_false_triggers, "that should not"),
    ):
        if rate is None:
            continue
        needed = stats.queries_needed(rate.estimate, least=least, most=most)
        if needed is not None and needed > rate.queries:
            tell = "tells" if rate.queries == 1 else "tell"
            notes.append(f"{_queries(rate)} {kind} {tell} little: about {needed} would be enough")
    return notes


def _decide_gate(
    cell: TriggerCell, thresholds: Thresholds, comparison: Comparison | None
) -> TriggerGate:
    if reason := cell.why_undecidable:
        misses_data = bool(cell.missing) and not cell.by_words
        return skipped_gate(TriggerGate, cell, reason, misses_data=misses_data)
    problems = _problems(cell, thresholds.with_overrides(cell.gate), comparison)
    return make_gate(TriggerGate, cell, problems, trigger_sentence(cell), comparison=comparison)


def _problems(
    cell: TriggerCell, thresholds: Thresholds, comparison: Comparison | None
) -> Iterator[Problem]:
    """Yield the limits that the cell misses, or could miss because of open runs."""
    yield from regression_problems(comparison, thresholds, "the choice")
    yield from too_low(cell.recall_if, thresholds.min_recall, "recall is under {:g}%")
    most = thresholds.max_false_triggers
    low, high = cell.false_triggers_if(False), cell.false_triggers_if(True)
    if most is not None and low is not None and high is not None and high > most:
        yield Problem(f"false triggers are over {100 * most:g}%", is_certain=low > most)


def _queries(rate: Rate) -> str:
    return counted(rate.queries, "query", "queries")
