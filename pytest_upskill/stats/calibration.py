"""The lift, corrected for the errors of a judge by labels of some of the answers, and its accuracy.

It is double sampling (Tenenbein 1970, JASA 65:1350-1361): the judge decides every answer, and a
person labels some, drawn at random from four strata: with and without the skill, judged to pass and
not to pass. Strata of the arms are never pooled, as a judge may be more lenient to one arm.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import floor, fsum, sqrt
from statistics import fmean

from pytest_upskill.stats import intervals
from pytest_upskill.stats.counts import CaseCounts, Estimate, lift
from pytest_upskill.stats.verdicts import MARGIN, MIN_RUNS, NO_EFFECT_ALPHA, Verdict, fewest_runs

Stratum = tuple[bool, bool]
"""Whether the skill is in context, and whether the judge passed the answers."""

STRATA: tuple[Stratum, ...] = ((True, True), (True, False), (False, True), (False, False))

MIN_LABELS = 10
"""Minimum number of labels in a stratum, unless all of its answers are labelled."""


@dataclass(frozen=True, slots=True)
class JudgedRuns:
    """The valid runs of one case in one arm, and those that depended on a judge.

    A run depends on the judge if it has statements to decide and no check by code failed.

    Raises:
        ValueError: A count is negative or larger than the one that it is part of.
    """

    passes: int
    runs: int
    judged_passes: int
    """Those of the passes that depended on the judge."""
    judged_fails: int
    """Runs that only the judge did not pass."""

    def __post_init__(self) -> None:
        fails = self.runs - self.passes
        if not 0 <= self.judged_passes <= self.passes or not 0 <= self.judged_fails <= fails:
            raise ValueError(
                f"{self.judged_passes} judged of {self.passes} passes, "
                f"{self.judged_fails} judged of {fails} others: a part cannot be larger"
            )


@dataclass(frozen=True, slots=True)
class JudgedCase:
    """The valid runs of one case in two arms, as the judge decided them."""

    with_skill: JudgedRuns
    without_skill: JudgedRuns

    def arm(self, *, with_skill: bool) -> JudgedRuns:
        """Return the runs of one arm."""
        return self.with_skill if with_skill else self.without_skill

    def answers(self, stratum: Stratum) -> int:
        """Return the number of answers in a stratum."""
        with_skill, judged = stratum
        arm = self.arm(with_skill=with_skill)
        return arm.judged_passes if judged else arm.judged_fails

    @property
    def counts(self) -> CaseCounts:
        """The counts by the judge."""
        with_, without = self.with_skill, self.without_skill
        return CaseCounts(with_.passes, with_.runs, without.passes, without.runs)


@dataclass(frozen=True, slots=True, order=True)
class Label:
    """A person's decision about one answer that depended on the judge."""

    case: int
    """Index of the case."""
    with_skill: bool
    judged: bool
    """Whether the answer passed by the judge."""
    passed: bool
    """Whether it passes by the label."""


def answers_of(cases: Sequence[JudgedCase], stratum: Stratum) -> int:
    """Return the number of answers in a stratum."""
    return sum(case.answers(stratum) for case in cases)


def labels_needed(answers: int) -> int:
    """Return the minimum number of labels of a stratum, given the number of its answers."""
    return min(MIN_LABELS, answers)


def lacking_labels(
    cases: Sequence[JudgedCase], labels: Sequence[Label]
) -> list[tuple[Stratum, int]]:
    """Return the strata with too few labels, and how many are missing.

    Args:
        cases: The runs as judged, one entry for each case.
        labels: The labels, in any order.
    """
    have = Counter((label.with_skill, label.judged) for label in labels)
    needed = ((stratum, labels_needed(answers_of(cases, stratum))) for stratum in STRATA)
    return [(stratum, need - have[stratum]) for stratum, need in needed if have[stratum] < need]


@dataclass(frozen=True, slots=True, kw_only=True)
class Correction:
    """A lift, corrected by labels."""

    lift: Estimate
    """With its interval."""
    with_skill: float
    """Corrected pass rate with the skill."""


def correct_lift(
    cases: Sequence[JudgedCase],
    labels: Sequence[Label],
    level: float = 0.95,
    *,
    sampled: bool = True,
) -> Correction | None:
    """Return the lift corrected for the errors of the judge, with its interval.

    The pass rate of arm a is ``judged_a + Σ_g W_ag d_ag``, where W is the share of the arm's runs
    in stratum g, and d the mean of label minus judgement there. Its variance given the judgements
    is ``V = Σ W² s² (1 - m/N)``, with m labels of N answers and a share e of errors of the judge
    among them. ``s² = e(1-e)/(m-2)``: with m-1 it would be unbiased (Cochran 1977, Sampling
    Techniques, 3.2), but small where e is far off, as both are from the same labels. It is at least
    ``r(1-r)/(m+1)`` with ``r = (me+½)/(m+1)``, as ten labels without an error do not mean that
    there is none. The interval is square-and-add around the interval
    [l, u] of the judged lift δ: ``low = corrected - √((δ-l)² + t²V)``, and high alike (Zou & Donner
    2008, Stat Med 27:1693-1702), where t is Student's with Satterthwaite's degrees of freedom, as m
    is small. The squares grow by z² times what the variance of the pass rates that the labels
    imply exceeds that of the judged ones: a judge who passes everything hides how answers vary.

    Args:
        cases: The runs as judged, one entry for each case; all cases weigh the same. Cases without
            a run in one of the arms are left out.
        labels: The labels, in any order.
        level: Confidence level, from 0 to 1.
        sampled: Whether the labelled answers are among these runs; False for labels of other
            answers of the same model, judge, cases and skill, which say less about these runs.

    Returns:
        The correction within -1..1, or None without a lift, or if answers in a stratum have no
        label.
    """
    estimate = lift([case.counts for case in cases])
    strata = [_stratum(cases, labels, stratum) for stratum in STRATA]
    if estimate is None or any(each.share and not each.labels for each in strata):
        return None
    # A sum of all, so that labels that agree leave the lift exactly as it was judged.
    shifts = [each.share * each.shift * (1 if each.with_skill else -1) for each in strata]
    corrected = min(1.0, max(-1.0, estimate + fsum(shifts)))
    judged = [case.with_skill for case in cases if case.counts.usable]
    pass_rate = fmean(arm.passes / arm.runs for arm in judged)
    pass_rate += fsum(shift for each, shift in zip(strata, shifts, strict=True) if each.with_skill)
    spread = _spread(strata, level, sampled=sampled)
    reaches = _squared_reaches(cases, strata, estimate, level)
    down, up = (sqrt(square + spread) for square in reaches)
    return Correction(
        lift=Estimate(corrected, max(-1.0, corrected - down), min(1.0, corrected + up)),
        with_skill=min(1.0, max(0.0, pass_rate)),
    )


def corrected_verdict(
    cases: Sequence[JudgedCase],
    labels: Sequence[Label],
    alpha: float = 0.05,
    *,
    sampled: bool = True,
) -> Verdict:
    """Return the verdict by the corrected interval.

    It is ``helps`` or ``hurts`` if the ``1 - alpha`` interval excludes 0, else ``no effect`` if the
    90 % interval lies within ±``MARGIN``, else ``too few runs``.

    Args:
        cases: The runs as judged, one entry for each case.
        labels: The labels, in any order.
        alpha: Error rate of ``helps`` and ``hurts``, from 0 to 1.
        sampled: As of ``correct_lift``.
    """
    wide = correct_lift(cases, labels, 1 - alpha, sampled=sampled)
    narrow = correct_lift(cases, labels, 1 - 2 * NO_EFFECT_ALPHA, sampled=sampled)
    counts = [case.counts for case in cases if case.counts.usable]
    if wide is None or narrow is None or fewest_runs(counts) < MIN_RUNS:
        return "too few runs"
    if wide.lift.low > 0:
        return "helps"
    if wide.lift.high < 0:
        return "hurts"
    is_small = narrow.lift.low > -MARGIN and narrow.lift.high < MARGIN
    return "no effect" if is_small else "too few runs"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stratum:
    """A stratum with the labels in it."""

    with_skill: bool
    share: float
    """Mean over cases of the share of the arm's runs."""
    answers: int
    labels: int
    errors: float
    """Share of the labels that contradict the judge, weighted as their cases."""
    judged: bool

    @property
    def shift(self) -> float:
        """Mean of label minus judgement."""
        return -self.errors if self.judged else self.errors

    def variance(self, *, sampled: bool) -> float:
        if not self.share:
            return 0.0
        errors, labels = self.errors, self.labels
        seen = errors * (1 - errors) / max(1, labels - 2)
        rate = (errors * labels + 0.5) / (labels + 1)
        least = rate * (1 - rate) / (labels + 1)
        left = max(0.0, 1 - labels / self.answers) if sampled else 1.0
        return self.share**2 * max(seen, least) * left


def _stratum(cases: Sequence[JudgedCase], labels: Sequence[Label], stratum: Stratum) -> _Stratum:
    with_skill, judged = stratum
    usable = [index for index, case in enumerate(cases) if case.counts.usable]
    answers = {i: cases[i].answers(stratum) for i in usable}
    weights = {i: 1 / (len(usable) * cases[i].arm(with_skill=with_skill).runs) for i in usable}
    inside = [x for x in labels if (x.with_skill, x.judged) == stratum and x.case in weights]
    total = fsum(weights[label.case] for label in inside)
    wrong = fsum(weights[label.case] for label in inside if label.passed is not judged)
    return _Stratum(
        with_skill=with_skill,
        judged=judged,
        share=fsum(weights[i] * count for i, count in answers.items()),
        answers=sum(answers.values()),
        labels=len(inside),
        errors=wrong / total if total else 0.0,
    )


def _spread(strata: Sequence[_Stratum], level: float, *, sampled: bool) -> float:
    """Return the square of the half-width that is due to the judge."""
    variances = [each.variance(sampled=sampled) for each in strata]
    total = fsum(variances)
    if not total:
        return 0.0
    parts = zip(strata, variances, strict=True)
    freedom = total**2 / fsum(v**2 / max(1, each.labels - 1) for each, v in parts)
    # Whole degrees of freedom, which are slightly wide, are computed once.
    return intervals.student_t_quantile((1 + level) / 2, max(1, floor(freedom))) ** 2 * total


def _squared_reaches(
    cases: Sequence[JudgedCase], strata: Sequence[_Stratum], estimate: float, level: float
) -> tuple[float, float]:
    """Return the squares of the half-widths down and up that are due to the number of runs."""
    interval = intervals.lift_interval([case.counts for case in cases], level)
    assert interval is not None
    as_judged = [replace(each, errors=0.0) for each in strata]
    more = max(0.0, _variance(cases, strata) - _variance(cases, as_judged))
    spread = intervals.two_sided_z(level) ** 2 * more
    return (estimate - interval.low) ** 2 + spread, (interval.high - estimate) ** 2 + spread


def _variance(cases: Sequence[JudgedCase], strata: Sequence[_Stratum]) -> float:
    """Return the variance of the lift if a stratum has the same share of errors in every case."""
    errors = {(each.with_skill, each.judged): each.errors for each in strata}
    usable = [case for case in cases if case.counts.usable]
    parts = []
    for case, with_skill in product(usable, (True, False)):
        arm = case.arm(with_skill=with_skill)
        lost = arm.judged_passes * errors[with_skill, True]
        gained = arm.judged_fails * errors[with_skill, False]
        rate = (arm.passes - lost + gained) / arm.runs
        parts.append(rate * (1 - rate) / arm.runs)
    return fsum(parts) / len(usable) ** 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """How often the judge is right in one arm; None without such a label."""

    holds: Estimate | None
    """Share that the judge passes of the answers that pass by their labels."""
    fails: Estimate | None
    """Share that the judge fails of the answers that do not."""


def agreement(passed: tuple[int, Sequence[bool]], failed: tuple[int, Sequence[bool]]) -> Agreement:
    """Return how often the judge is right in one arm, estimated for all of its answers.

    A label stands for as many answers of its stratum as it is one of. The intervals are Wilson's,
    for the effective number of labels (Kish 1965; Korn & Graubard 1998, Surv Methodol 24:193-201).

    Args:
        passed: How many answers the judge passed, and whether each labelled one passes by label.
        failed: The same of those that it did not pass.
    """
    weighted = [
        (judged, label, answers / len(labels))
        for judged, (answers, labels) in ((True, passed), (False, failed))
        for label in labels
    ]
    holds, fails = (
        _share([(judged is label, weight) for judged, label, weight in weighted if label is right])
        for right in (True, False)
    )
    return Agreement(holds=holds, fails=fails)


def _share(labels: Sequence[tuple[bool, float]]) -> Estimate | None:
    """Return the weighted share of true values with its interval, None without any."""
    total = fsum(weight for _, weight in labels)
    if not total:
        return None
    rate = fsum(weight for found, weight in labels if found) / total
    effective = total**2 / fsum(weight**2 for _, weight in labels)
    return Estimate(rate, *intervals.wilson_interval(rate, effective))
