"""The results that a cell is compared with: a baseline, or the old skill in the same session."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from collections.abc import Set as AbstractSet

from pytest_upskill import stats
from pytest_upskill.cells.baseline import FORMAT, Baseline, BaselineCase, Tally
from pytest_upskill.cells.cell import Cell
from pytest_upskill.cells.comparison import ComparedCase, Comparison, tally, total
from pytest_upskill.trials.result import TrialResult

_DRIFT_ALPHA = 0.01
_RECORD = "record one with --upskill-runs 10 --upskill-baseline-update and commit it"


def against_baseline(cell: Cell, baseline: Baseline | None) -> Comparison:
    """Compare a cell with its baseline, on cases whose prompt and checks did not change.

    Args:
        cell: The cell.
        baseline: Its baseline, None if there is none.
    """
    if baseline is None:
        return Comparison(then="baseline", notes=(f"no baseline: {_RECORD}",), lacking=True)
    now = [trial for trial in cell.trials if trial.arm == "with_skill"]
    cases = since_baseline(now, baseline)
    notes = tuple(_left_out(cell, baseline, {case.id for case in cases}))
    lacking = not any(case.counts.usable for case in cases)
    if lacking:
        notes = (f"no case in common with the baseline: {_RECORD}", *notes)
    return Comparison(
        then="baseline",
        cases=cases,
        lacking=lacking,
        drift=_drift(cell, baseline, {case.id for case in cases}),
        notes=notes,
    )


def against_ref(cell: Cell) -> Comparison:
    """Compare a cell with the results of its old skill, from a git ref, in the same session."""
    if cell.history:
        return Comparison(then=cell.ref, notes=(cell.history,), lacking=cell.past_unknown)
    now, old = (
        [trial for trial in cell.trials if trial.arm == arm] for arm in ("with_skill", "old_skill")
    )
    return Comparison(then=cell.ref, cases=since_ref(now, old))


def since_baseline(trials: Iterable[TrialResult], baseline: Baseline) -> tuple[ComparedCase, ...]:
    """Compare trials with a baseline, on cases whose prompt and checks did not change."""
    recorded = {case.id: case for case in baseline.cases}
    return tuple(
        ComparedCase(
            id=trial.case,
            now=_tally(trial),
            then=recorded[trial.case].with_skill,
            missing_now=len(trial.errors),
        )
        for trial in trials
        if trial.case in recorded and _is_same(trial, recorded[trial.case])
    )


def since_ref(
    trials: Iterable[TrialResult], old: Iterable[TrialResult]
) -> tuple[ComparedCase, ...]:
    """Compare trials with those of the old skill, on the cases that both have."""
    then = {trial.case: trial for trial in old}
    return tuple(
        ComparedCase(
            id=trial.case,
            now=_tally(trial),
            then=_tally(then[trial.case]),
            missing_now=len(trial.errors),
            missing_then=len(then[trial.case].errors),
        )
        for trial in trials
        if trial.case in then
    )


def _tally(trial: TrialResult) -> Tally | None:
    return tally(trial) if trial.runs else None


def _is_same(trial: TrialResult, case: BaselineCase) -> bool:
    return (trial.prompt_digest, trial.grader_digest) == (case.digest, case.grader)


def _left_out(cell: Cell, baseline: Baseline, same: Collection[str]) -> Iterator[str]:
    """Yield lines about the cases that cannot be compared with the baseline."""
    recorded = {case.id for case in baseline.cases}
    here = {trial.case for trial in cell.trials if trial.arm == "with_skill" and trial.runs}
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
    if changed and baseline.format < FORMAT:
        yield (
            f"the baseline has format {baseline.format}, in which 0, false, null and "
            f'"" in checks look the same: cases with them count as changed: record it again'
        )


def _drift(cell: Cell, baseline: Baseline, same: AbstractSet[str]) -> str:
    """Return how the model changed, by its name or its results without the skill; empty if not."""
    if renamed := other_model(cell.served, baseline.served):
        return renamed
    recorded = {case.id: case.without_skill for case in baseline.cases if case.without_skill}
    compared = [
        (tally(trial), recorded[trial.case])
        for trial in cell.trials
        if trial.arm == "without_skill" and trial.case in same & recorded.keys() and trial.runs
    ]
    now, then = zip(*compared, strict=True) if compared else ((), ())
    p = stats.lift_test(
        [
            stats.CaseCounts(one.passes, one.runs, other.passes, other.runs)
            for one, other in zip(now, then, strict=True)
        ]
    )
    if stats.significant(p, _DRIFT_ALPHA):
        return f"the model has changed: {total(now)} without the skill, baseline {total(then)}"
    return ""


def other_model(now: Iterable[str], then: Iterable[str]) -> str:
    """Return that other models answered than in the baseline; empty if the same ones did.

    Args:
        now: Names of the models that answered now; empty if they are not known.
        then: Those in the baseline.
    """
    served, recorded = set(now), set(then)
    if not served or not recorded or served & recorded:
        return ""
    return f"the model is {_listed(served)} now, {_listed(recorded)} in the baseline"


def _listed(names: Iterable[str]) -> str:
    return " and ".join(sorted(names))
