"""The results that a cell is compared with: a baseline, or the old skill in the same session."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace

from pytest_upskill import stats
from pytest_upskill.cells.baseline import ArmCounts, Baseline, BaselineCase
from pytest_upskill.cells.baseline_folder import Baselines, key_of
from pytest_upskill.cells.cell import Cell
from pytest_upskill.cells.comparison import (
    ComparedCase,
    Comparison,
    adjust,
    arm_counts,
    total,
)
from pytest_upskill.cells.trial_group import TrialGroup
from pytest_upskill.cells.trigger_cell import TriggerCell
from pytest_upskill.trials.result import TrialResult

_DRIFT_ALPHA = 0.01
_RECORD = "record one with --upskill-runs {runs} --upskill-baseline-update and commit it"


def compare(
    cells: Sequence[Cell | TriggerCell], baselines: Baselines | None
) -> list[Comparison | None]:
    """Return the comparison of each cell with its past, None without a decision or a past.

    Against a git ref only skills that changed are tested, as nothing else differs; against a
    baseline all are, as another skill may take the queries of one that did not change. Holm's
    correction counts those that are tested.

    Args:
        cells: All cells of one kind.
        baselines: Baselines to compare with; None for none. A cell with trials of an old skill
            from a git ref is compared with those instead.
    """
    stored = baselines.of([key_of(cell) for cell in cells]) if baselines else [None] * len(cells)

    def comparison_of(cell: Cell | TriggerCell, baseline: Baseline | None) -> Comparison | None:
        if cell.why_undecidable:
            return None
        if cell.ref:
            return _against_ref(cell)
        if baselines is None:
            return None
        if isinstance(cell, Cell):
            return against_baseline(cell, baseline)
        return _triggers_against_baseline(cell, baseline)

    pairs = zip(cells, stored, strict=True)
    return adjust([comparison_of(cell, baseline) for cell, baseline in pairs])


def against_baseline(cell: Cell, baseline: Baseline | None) -> Comparison:
    """Compare a cell with its baseline, on cases whose prompt and checks did not change.

    Args:
        cell: The cell.
        baseline: Its baseline, None if there is none.
    """
    record = _RECORD.format(runs=10)
    if baseline is None:
        return Comparison(then="baseline", notes=(f"no baseline: {record}",), lacking=True)
    cases = _since_baseline(cell, baseline)
    notes = tuple(_not_compared(cell, baseline, {case.id for case in cases}))
    lacking = not any(case.counts.usable for case in cases)
    if lacking:
        notes = (f"no case in common with the baseline: {record}", *notes)
    return Comparison(
        then="baseline",
        cases=cases,
        lacking=lacking,
        drift=_model_change(cell, baseline, {case.id for case in cases}),
        notes=notes,
    )


def _triggers_against_baseline(cell: TriggerCell, baseline: Baseline | None) -> Comparison:
    if baseline is None:
        note = f"no baseline of triggers: {_RECORD.format(runs=5)}"
        return Comparison(then="baseline", notes=(note,), lacking=True, chooses=True)
    cases = _since_baseline(cell, baseline)
    changed = sorted({trial.case for trial in cell.current_trials} - {case.id for case in cases})
    notes: tuple[str, ...] = ()
    if changed:
        notes = (f"not compared, new or changed since the baseline: {', '.join(changed)}",)
    return Comparison(
        then="baseline",
        chooses=True,
        cases=cases,
        notes=notes,
        lacking=not cases,
        unchanged=all(trial.skill_digest == baseline.skill_digest for trial in cell.current_trials),
        drift=_other_model(cell, baseline),
    )


def _against_ref(cell: Cell | TriggerCell) -> Comparison:
    """Compare a cell with the results of its old skill, from a git ref, in the same session."""
    past = Comparison(then=cell.ref, chooses=isinstance(cell, TriggerCell))
    if cell.history:
        return replace(past, notes=(cell.history,), lacking=cell.past_unknown)
    then = {trial.case: trial for trial in cell.old_trials}
    cases = (
        _compared(trial, then[trial.case]) for trial in cell.current_trials if trial.case in then
    )
    return replace(past, cases=tuple(cases))


def _compared(trial: TrialResult, then: TrialResult | ArmCounts) -> ComparedCase:
    """Compare a trial with its past; all runs of a baseline are known."""

    def counts_if(for_skill: bool) -> stats.CaseCounts:
        past = (
            (then.passes, then.runs)
            if isinstance(then, ArmCounts)
            else then.counts_if(open_pass=not for_skill)
        )
        return stats.CaseCounts(*trial.counts_if(open_pass=for_skill), *past)

    return ComparedCase(
        id=trial.case,
        now=_counts(trial),
        then=then if isinstance(then, ArmCounts) else _counts(then),
        if_for=counts_if(True),
        if_against=counts_if(False),
    )


def _since_baseline(cell: TrialGroup, baseline: Baseline) -> tuple[ComparedCase, ...]:
    """Compare trials with a baseline, on cases whose prompt and checks did not change."""
    recorded = {case.id: case for case in baseline.cases}
    return tuple(
        _compared(trial, recorded[trial.case].with_skill)
        for trial in cell.current_trials
        if trial.case in recorded and _is_same(trial, recorded[trial.case])
    )


def _counts(trial: TrialResult) -> ArmCounts | None:
    return arm_counts(trial) if trial.runs else None


def _is_same(trial: TrialResult, case: BaselineCase) -> bool:
    return (trial.prompt_digest, trial.grader_digest) == (case.digest, case.grader)


def _not_compared(cell: Cell, baseline: Baseline, same: Collection[str]) -> Iterator[str]:
    """Yield lines about the cases that cannot be compared with the baseline."""
    recorded = {case.id for case in baseline.cases}
    here = {trial.case for trial in cell.current_trials if trial.runs}
    known = here.union(cell.skipped, (trial.case for trial in cell.trials))
    changed = (here & recorded) - set(same)
    for why, ids in (
        ("changed since the baseline", changed),
        ("new since the baseline", here - recorded),
        ("removed since the baseline", recorded - known),
        ("without a valid run with the skill now", (recorded & known) - here),
    ):
        if ids:
            yield f"not compared, {why}: {', '.join(sorted(ids))}"


def _model_change(cell: Cell, baseline: Baseline, same: AbstractSet[str]) -> str:
    """Return how the model changed, by its name or its results without the skill; empty if not."""
    if renamed := _other_model(cell, baseline):
        return renamed
    recorded = {case.id: case.without_skill for case in baseline.cases if case.without_skill}
    trials = [
        trial
        for trial in cell.counted_trials
        if trial.arm == "without_skill" and trial.case in same & recorded.keys() and trial.runs
    ]
    now = [arm_counts(trial) for trial in trials]
    then = [recorded[trial.case] for trial in trials]
    # It has changed if it has whatever the open runs would have shown.
    p = max(
        stats.lift_test(
            [
                stats.CaseCounts(*trial.counts_if(open_pass=passed), old.passes, old.runs)
                for trial, old in zip(trials, then, strict=True)
            ]
        )
        for passed in (False, True)
    )
    if stats.significant(p, _DRIFT_ALPHA):
        return f"the model has changed: {total(now)} without the skill, baseline {total(then)}"
    return ""


def _other_model(cell: TrialGroup, baseline: Baseline) -> str:
    """Return that other models answered than in the baseline; empty if the same ones did."""
    served, recorded = set(cell.served), set(baseline.served)
    if not served or not recorded or served & recorded:
        return ""
    return f"the model is {_join_names(served)} now, {_join_names(recorded)} in the baseline"


def _join_names(names: Iterable[str]) -> str:
    return " and ".join(sorted(names))
