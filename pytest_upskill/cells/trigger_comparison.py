"""Comparison of a trigger cell with its past, to detect a description that has become worse."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pytest_upskill.cells.baseline import Baseline
from pytest_upskill.cells.baseline_folder import Baselines, key_of
from pytest_upskill.cells.comparison import Comparison, adjust, p_text, total
from pytest_upskill.cells.past import other_model, since_baseline, since_ref
from pytest_upskill.cells.trigger_cell import TriggerCell

_RECORD = "record one with --upskill-runs 5 --upskill-baseline-update and commit it"


@dataclass(frozen=True, slots=True, kw_only=True)
class TriggerComparison(Comparison):
    """Results of a cell's queries with the current and the old description; stratum = query."""

    unchanged: bool = False
    """Whether the description equals the baseline's, so that only other skills can differ."""

    @property
    def sentence(self) -> str:
        """Totals and p-value: ``31/40 runs right, baseline 39/40, p = .003``."""
        now = total(case.now for case in self.measured)
        then = total(case.then for case in self.measured)
        return f"{now} runs right, {self.then} {then}, p {p_text(self.p)}"

    @property
    def next_step(self) -> str:
        """Advice about a regression."""
        again = " and record the baseline again: --upskill-baseline-update"
        rerecord = again if self.then == "baseline" else ""
        if self.unchanged:
            return (
                "next: the description is unchanged: look for a skill that is chosen instead, and "
                "say in both descriptions how the skills differ; or record the baseline again: "
                "--upskill-baseline-update"
            )
        return (
            "next: say in the description when to use the skill, in the words of these queries, "
            f"or change the queries{rerecord}"
        )


def compare_triggers(
    cells: Sequence[TriggerCell], baselines: Baselines | None
) -> list[TriggerComparison | None]:
    """Return the comparison of each cell with its past, None without a decision or a past.

    Against a git ref only skills whose description changed are tested, as nothing else differs;
    against a baseline all are, as another skill may take the queries of one that did not change.
    Holm's correction counts those that are tested.
    """
    stored = baselines.of([key_of(cell) for cell in cells]) if baselines else [None] * len(cells)

    def compared(cell: TriggerCell, baseline: Baseline | None) -> TriggerComparison | None:
        if cell.by_words or cell.undecidable:
            return None
        if cell.ref:
            return _against_ref(cell)
        return None if baselines is None else _against_baseline(cell, baseline)

    found = adjust([compared(*each) for each in zip(cells, stored, strict=True)])
    return [each if isinstance(each, TriggerComparison) else None for each in found]


def _against_ref(cell: TriggerCell) -> TriggerComparison:
    if cell.history or not cell.before:
        return TriggerComparison(
            then=cell.ref, notes=(cell.history,) * bool(cell.history), lacking=cell.past_unknown
        )
    return TriggerComparison(then=cell.ref, cases=since_ref(cell.now, cell.before))


def _against_baseline(cell: TriggerCell, baseline: Baseline | None) -> TriggerComparison:
    if baseline is None:
        return TriggerComparison(
            then="baseline", notes=(f"no baseline of triggers: {_RECORD}",), lacking=True
        )
    cases = since_baseline(cell.now, baseline)
    changed = sorted({trial.case for trial in cell.now} - {case.id for case in cases})
    notes = (f"not compared, new or changed since the baseline: {', '.join(changed)}",)
    return TriggerComparison(
        then="baseline",
        cases=cases,
        notes=notes * bool(changed),
        lacking=not cases,
        unchanged=all(trial.skill_digest == baseline.skill_digest for trial in cell.now),
        drift=other_model(cell.served, baseline.served),
    )
