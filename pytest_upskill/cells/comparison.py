"""A cell against what it was before: has the skill become worse?"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from pytest_upskill import stats
from pytest_upskill.cells.baseline import FORMAT, Baseline, BaselineCase, Tally
from pytest_upskill.cells.cell import Cell
from pytest_upskill.result import TrialResult

_DRIFT_ALPHA = 0.01
_NAMED = 5
"""Cases that a headline names."""

_RECORD = "record one with --upskill-runs 10 --upskill-baseline-update and commit it"


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedCase:
    """One case with the skill, as it is and as it was."""

    id: str
    now: Tally | None
    """None where all runs are missing, as in ``then``."""
    then: Tally | None
    missing_now: int = 0
    missing_then: int = 0

    @property
    def counts(self) -> stats.CaseCounts:
        """The skill as it is in the place of *with*, as it was in that of *without*."""
        now, then = ((each.passes, each.runs) if each else (0, 0) for each in (self.now, self.then))
        return stats.CaseCounts(*now, *then)

    def filled(self, *, worse: bool) -> stats.CaseCounts:
        """Return the counts, had all missing runs been against the skill as it is, or for it."""
        return self.counts.with_missing(
            self.missing_now, self.missing_then, skill_is_lucky=not worse
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """What a cell's cases pass now and what they passed then."""

    then: str
    """What it is compared with, as a reader would say."""
    cases: tuple[ComparedCase, ...] = ()
    p: float = 1.0
    """Of ``stats.regression_test``, adjusted for the number of cells; ``adjust`` sets it."""
    p_if_worse: float = 1.0
    """The same, had all missing runs of all cells been against the skills as they are."""
    p_if_better: float = 1.0
    """The same, had they all been for them."""
    drift: str = ""
    """Why the model, and not the skill, may be what has changed."""
    notes: tuple[str, ...] = ()
    """What else to know of it, a line each."""
    lacking: bool = False
    """Whether no case is compared although some should be."""

    @property
    def measured(self) -> tuple[ComparedCase, ...]:
        """The cases with valid runs on both sides."""
        return tuple(case for case in self.cases if case.counts.usable)

    @property
    def dropped(self) -> bool:
        """Whether the cases pass less often, and not by chance."""
        return self._drops([case.counts for case in self.cases], self.p)

    @property
    def regressed(self) -> bool:
        """Whether the skill has become worse."""
        return self.dropped and not self.drift

    def would_regress(self, *, worse: bool) -> bool:
        """Return whether it has, had the missing runs all been for the worse, or the better."""
        counts = [case.filled(worse=worse) for case in self.cases]
        p = self.p_if_worse if worse else self.p_if_better
        return self._drops(counts, p) and not self.drift

    @property
    def sentence(self) -> str:
        """What was compared: ``12/25 with the skill, baseline 24/25, p = .003``."""
        now = _total(case.now for case in self.measured)
        then = _total(case.then for case in self.measured)
        return f"{now} with the skill, {self.then} {then}, p {_p(self.p)}"

    @property
    def base(self) -> str:
        """What it is compared with, within a sentence."""
        return "the baseline" if self.then == "baseline" else self.then

    @property
    def headline(self) -> str:
        """What has become worse: ``became worse than the baseline: case, case (12/25 …)``."""
        # Sorted: shares of a run, merged, need not keep the order of the file.
        worse = sorted(case.id for case in self.measured if case.counts.difference < 0)
        more = f" and {len(worse) - _NAMED} more" if len(worse) > _NAMED else ""
        return f"became worse than {self.base}: {', '.join(worse[:_NAMED])}{more} ({self.sentence})"

    @property
    def next_step(self) -> str:
        """What to do about a regression."""
        again = " and record the baseline again: --upskill-baseline-update"
        rerecord = again if self.then == "baseline" else ""
        return f"next: restore the facts in the skill, or change the cases{rerecord}"

    @property
    def remarks(self) -> Iterator[str]:
        """What to say of it below the table."""
        if self.measured:
            yield self.headline if self.regressed else self.sentence
            if self.regressed:
                yield self.next_step
        if self.drift:
            what = "no regression is called" if self.dropped else "compare with care"
            yield f"warning: {self.drift}: {what}, record the baseline again"
        yield from self.notes

    @property
    def gaps(self) -> tuple[str, ...]:
        """What was not compared although it should be, a line each."""
        return self.notes if self.cases or self.lacking else ()

    @property
    def worse(self) -> list[str]:
        """List which cases pass less often, and how often."""
        return [
            f"worse: {case.id}: {case.then} -> {case.now}"
            for case in self.measured
            if case.counts.difference < 0
        ]

    @property
    def by_case(self) -> dict[str, ComparedCase]:
        """The compared cases by their ids."""
        return {case.id: case for case in self.measured}

    def _drops(self, counts: Sequence[stats.CaseCounts], p: float) -> bool:
        difference = stats.lift(counts)
        return difference is not None and difference < 0 and stats.significant(p)


def against_baseline(cell: Cell, baseline: Baseline | None) -> Comparison:
    """Compare a cell with its baseline, on the cases that are the same in both."""
    if baseline is None:
        return Comparison(then="baseline", notes=(f"no baseline: {_RECORD}",), lacking=True)
    recorded = {case.id: case for case in baseline.cases}
    same = [
        (trial, recorded[trial.case])
        for trial in cell.trials
        if trial.arm == "with_skill" and trial.case in recorded
        if _is_same(trial, recorded[trial.case])
    ]
    cases = tuple(
        ComparedCase(
            id=case.id,
            now=_tally(trial),
            then=case.with_skill,
            missing_now=len(trial.errors),
        )
        for trial, case in same
    )
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
    """Compare a cell with what the skill of its git ref came to in the same run."""
    if cell.history:
        return Comparison(then=cell.ref, notes=(cell.history,), lacking=cell.past_unknown)
    old = {trial.case: trial for trial in cell.trials if trial.arm == "old_skill"}
    cases = tuple(
        ComparedCase(
            id=one.case,
            now=_tally(one),
            then=_tally(old[one.case]),
            missing_now=len(one.errors),
            missing_then=len(old[one.case].errors),
        )
        for one in cell.trials
        if one.arm == "with_skill" and one.case in old
    )
    return Comparison(
        then=cell.ref,
        cases=cases,
    )


def adjust(comparisons: Sequence[Comparison | None]) -> list[Comparison | None]:
    """Test every comparison, and adjust the p-values for the number of cells compared (Holm).

    Where runs are missing, that is also done with all of them counted against the skills as they
    are, and with all counted for them. Holm's p-values grow with each p-value of the family, so
    these are the bounds of what the missing runs, of whichever cells, could have brought.
    """
    compared = [each for each in comparisons if each and each.cases]
    observed = _holm([[case.counts for case in each.cases] for each in compared])
    worse, better = (
        _holm([[case.filled(worse=worse) for case in each.cases] for each in compared])
        for worse in (True, False)
    )
    tested = iter(
        replace(each, p=p, p_if_worse=low, p_if_better=high)
        for each, p, low, high in zip(compared, observed, worse, better, strict=True)
    )
    return [next(tested) if each and each.cases else each for each in comparisons]


def _holm(cells: Sequence[Sequence[stats.CaseCounts]]) -> list[float]:
    return stats.holm([stats.regression_test(counts) for counts in cells])


def tally(trial: TrialResult) -> Tally:
    """Count a trial's valid runs."""
    return Tally(trial.passes, len(trial.runs))


def _tally(trial: TrialResult) -> Tally | None:
    return tally(trial) if trial.runs else None


def _is_same(trial: TrialResult, case: BaselineCase) -> bool:
    return (trial.prompt_digest, trial.grader_digest) == (case.digest, case.grader)


def _left_out(cell: Cell, baseline: Baseline, same: Collection[str]) -> Iterator[str]:
    """List the cases that are in one of both only, not the same in both, or not measured now."""
    recorded = {case.id for case in baseline.cases}
    here = {trial.case for trial in cell.trials if trial.arm == "with_skill" and trial.runs}
    known = here.union(cell.skipped, (trial.case for trial in cell.trials))
    changed = (here & recorded) - set(same)
    for why, ids in (
        ("changed since the baseline", changed),
        ("new since the baseline", here - recorded),
        ("gone since the baseline", recorded - known),
        ("without a run with the skill now", (recorded & known) - here),
    ):
        if ids:
            yield f"not compared, {why}: {', '.join(sorted(ids))}"
    if changed and baseline.format < FORMAT:
        yield (
            f"the baseline has format {baseline.format}, in which 0, false, null and "
            f'"" in checks look the same: cases with them count as changed: record it again'
        )


def _drift(cell: Cell, baseline: Baseline, same: Collection[str]) -> str:
    """Return how the model answers another way, by what it calls itself and the arm without."""
    served = set(cell.served)
    if served and baseline.served and served.isdisjoint(baseline.served):
        return f"the model is {_listed(served)} now, {_listed(baseline.served)} in the baseline"
    recorded = {case.id: case.without_skill for case in baseline.cases}
    compared = [
        (tally(trial), recorded[trial.case])
        for trial in cell.trials
        if trial.arm == "without_skill" and trial.case in same and trial.runs
    ]
    now, then = zip(*compared, strict=True) if compared else ((), ())
    p = stats.lift_test(
        [
            stats.CaseCounts(one.passes, one.runs, other.passes, other.runs)
            for one, other in zip(now, then, strict=True)
        ]
    )
    if stats.significant(p, _DRIFT_ALPHA):
        return f"the model has changed: {_total(now)} without the skill, baseline {_total(then)}"
    return ""


def _total(tallies: Iterable[Tally | None]) -> str:
    counted = [each for each in tallies if each is not None]
    return f"{sum(each.passes for each in counted)}/{sum(each.runs for each in counted)}"


def _listed(names: Iterable[str]) -> str:
    return " and ".join(sorted(names))


def _p(p: float) -> str:
    """Write a p-value to three places, without the zero before the point."""
    text = f"{p:.3f}".removeprefix("0")
    return "< .001" if text == ".000" else f"= {text.rstrip('0').rstrip('.')}"
