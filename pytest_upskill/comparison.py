"""A cell against what it was before: has the skill become worse?"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from pytest_upskill import stats
from pytest_upskill.baseline import FORMAT, Baseline, BaselineCase, Tally
from pytest_upskill.cells import Cell, Pair
from pytest_upskill.results import TrialResult

_DRIFT_ALPHA = 0.01

_RECORD = "record one with --upskill-runs 10 --upskill-baseline-update and commit it"


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedCase:
    """One case with the skill, as it is and as it was."""

    id: str
    now: Tally
    then: Tally
    missing_now: int = 0
    missing_then: int = 0

    @property
    def counts(self) -> stats.CaseCounts:
        """The skill as it is in the place of *with*, as it was in that of *without*."""
        return stats.CaseCounts(self.now.passes, self.now.runs, self.then.passes, self.then.runs)


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """What a cell's cases pass now and what they passed then."""

    then: str
    """What it is compared with, as a reader would say."""
    cases: tuple[ComparedCase, ...] = ()
    p: float = 1.0
    """Of ``stats.regression_test``; adjusted for the number of cells by ``adjust``."""
    alpha: float = 0.05
    """Error rate of the test."""
    drift: str = ""
    """Why the model, and not the skill, may be what has changed."""
    notes: tuple[str, ...] = ()
    """What else to know of it, a line each."""
    lacking: bool = False
    """Whether no case is compared although some should be."""

    @property
    def dropped(self) -> bool:
        """Whether the cases pass less often, and not by chance."""
        return self._drops([case.counts for case in self.cases], self.p)

    @property
    def regressed(self) -> bool:
        """Whether the skill has become worse."""
        return self.dropped and not self.drift

    def would_regress(self, *, worse: bool) -> bool:
        """Tell whether it has, had the missing runs all been for the worse, or the better."""
        if not any(case.missing_now or case.missing_then for case in self.cases):
            return self.regressed
        counts = [
            case.counts.with_missing(case.missing_now, case.missing_then, skill_is_lucky=not worse)
            for case in self.cases
        ]
        return self._drops(counts, stats.regression_test(counts)) and not self.drift

    @property
    def sentence(self) -> str:
        """What was compared: ``12/25 with the skill, baseline 24/25, p = .003``."""
        now = _total(case.now for case in self.cases)
        then = _total(case.then for case in self.cases)
        return f"{now} with the skill, {self.then} {then}, p {_p(self.p)}"

    @property
    def remarks(self) -> Iterator[str]:
        """What to say of it below the table."""
        if self.cases:
            yield f"regression: {self.sentence}" if self.regressed else self.sentence
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
        """Say which cases pass less often."""
        return [
            f"worse: {case.id}: {case.then} -> {case.now}"
            for case in self.cases
            if case.counts.difference < 0
        ]

    def _drops(self, counts: Sequence[stats.CaseCounts], p: float) -> bool:
        difference = stats.lift(counts)
        return difference is not None and difference < 0 and stats.significant(p, self.alpha)


def against_baseline(cell: Cell, baseline: Baseline | None) -> Comparison:
    """Compare a cell with its baseline, on the cases that are the same in both."""
    if baseline is None:
        return Comparison(then="baseline", notes=(f"no baseline: {_RECORD}",), lacking=True)
    recorded = {case.id: case for case in baseline.cases}
    same = [
        (pair, recorded[pair[0].case])
        for pair in cell.pairs
        if pair[0].case in recorded and _is_same(pair, recorded[pair[0].case])
    ]
    cases = tuple(
        ComparedCase(id=case.id, now=tally(one), then=case.with_skill, missing_now=len(one.errors))
        for (one, _), case in same
    )
    notes = tuple(_left_out(cell, baseline, {case.id for case in cases}))
    if not cases:
        notes = (f"no case in common with the baseline: {_RECORD}", *notes)
    return Comparison(
        then="baseline",
        cases=cases,
        lacking=not cases,
        p=stats.regression_test([case.counts for case in cases]),
        drift=_drift(cell, baseline, same),
        notes=notes,
    )


def against_ref(cell: Cell) -> Comparison:
    """Compare a cell with what the skill of its git ref came to in the same run."""
    if cell.history:
        return Comparison(then=cell.ref, notes=(cell.history,), lacking=cell.past_unknown)
    cases = tuple(
        ComparedCase(
            id=one.case,
            now=tally(one),
            then=tally(other),
            missing_now=len(one.errors),
            missing_then=len(other.errors),
        )
        for one, other in cell.old_pairs
    )
    return Comparison(
        then=cell.ref,
        cases=cases,
        p=stats.regression_test([case.counts for case in cases]),
        alpha=cell.alpha,
    )


def adjust(comparisons: Sequence[Comparison | None]) -> list[Comparison | None]:
    """Adjust the p-values for the number of cells that were compared (Holm)."""
    ps = iter(stats.holm([each.p for each in comparisons if each and each.cases]))
    return [replace(each, p=next(ps)) if each and each.cases else each for each in comparisons]


def tally(trial: TrialResult) -> Tally:
    """Count a trial's valid runs."""
    return Tally(trial.passes, len(trial.runs))


def _is_same(pair: Pair, case: BaselineCase) -> bool:
    trial, _ = pair
    return (trial.prompt_digest, trial.grader_digest) == (case.digest, case.grader)


def _left_out(cell: Cell, baseline: Baseline, same: Collection[str]) -> Iterator[str]:
    """List the cases that are in one of both only, not the same in both, or not measured now."""
    recorded = {case.id for case in baseline.cases}
    here = {one.case for one, _ in cell.pairs}
    known = here.union(cell.skipped, (trial.case for trial in cell.trials))
    changed = (here & recorded) - set(same)
    for why, ids in (
        ("changed since the baseline", changed),
        ("new since the baseline", here - recorded),
        ("gone since the baseline", recorded - known),
        ("without a run in both arms now", (recorded & known) - here),
    ):
        if ids:
            yield f"not compared, {why}: {', '.join(sorted(ids))}"
    if changed and baseline.format < FORMAT:
        yield (
            f"the baseline has format {baseline.format}, in which 0, false, null and "
            f'"" in checks look the same: cases with them count as changed: record it again'
        )


def _drift(cell: Cell, baseline: Baseline, same: Sequence[tuple[Pair, BaselineCase]]) -> str:
    """Tell whether the model answers another way, by what it calls itself and the arm without."""
    served = set(cell.served)
    if served and baseline.served and served.isdisjoint(baseline.served):
        return f"the model is {_listed(served)} now, {_listed(baseline.served)} in the baseline"
    now = [tally(without) for (_, without), _ in same]
    then = [case.without_skill for _, case in same]
    p = stats.lift_test(
        [
            stats.CaseCounts(one.passes, one.runs, other.passes, other.runs)
            for one, other in zip(now, then, strict=True)
        ]
    )
    if stats.significant(p, _DRIFT_ALPHA):
        return f"the model has changed: {_total(now)} without the skill, baseline {_total(then)}"
    return ""


def _total(tallies: Iterable[Tally]) -> str:
    tallies = list(tallies)
    return f"{sum(each.passes for each in tallies)}/{sum(each.runs for each in tallies)}"


def _listed(names: Iterable[str]) -> str:
    return " and ".join(sorted(names))


def _p(p: float) -> str:
    """Write a p-value to three places, without the zero before the point."""
    text = f"{p:.3f}".removeprefix("0")
    return "< .001" if text == ".000" else f"= {text.rstrip('0').rstrip('.')}"
