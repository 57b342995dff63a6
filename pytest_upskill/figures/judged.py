"""A judge's decisions in a cell: how far to trust them, and how labels correct them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from pytest_upskill import stats
from pytest_upskill.figures.arm import Pair
from pytest_upskill.figures.trial_group import TrialGroup
from pytest_upskill.stats import calibration
from pytest_upskill.trials.result import TrialResult


@dataclass(frozen=True, kw_only=True)
class Judged:
    """The decisions of a judge about the cases that count towards a lift."""

    cell: TrialGroup
    pairs: Sequence[Pair]
    alpha: float
    """Significance level of the verdict."""

    @cached_property
    def cases(self) -> list[calibration.JudgedCase]:
        """The runs of each case as the judge decided them."""
        return [calibration.JudgedCase(*map(_runs, pair)) for pair in self.pairs]

    @property
    def decides(self) -> bool:
        """Whether statements could change the outcome of a run."""
        return any(calibration.answers_of(self.cases, stratum) for stratum in calibration.STRATA)

    @cached_property
    def reasons(self) -> list[str]:
        """Why the judge is not calibrated, one line each; empty if it is."""
        if self.cell.labels is None:
            return ["no answer is labelled"]
        lacking = calibration.lacking_labels(self.cases, self._labels)
        if not lacking:
            return []
        parts = [
            f"{count} more of the answers {'with' if with_skill else 'without'} the skill that the "
            f"judge {'passed' if passed else 'did not pass'}"
            for (with_skill, passed), count in lacking
        ]
        return [*self.cell.labels.lines, f"label {', '.join(parts)}"]

    @property
    def calibrated(self) -> bool:
        """Whether labels correct the judge."""
        return not self.reasons

    @cached_property
    def correction(self) -> calibration.Correction | None:
        """Corrections of lift and pass rate; None without enough labels."""
        if not self.calibrated:
            return None
        return calibration.correct_lift(self.cases, self._labels, sampled=self._all_labels_present)

    @property
    def corrected_lift(self) -> stats.Estimate | None:
        """The corrected lift with its 95 % interval; None without enough labels."""
        return self.correction.lift if self.correction else None

    def verdict_of(self, counts: Sequence[stats.CaseCounts]) -> stats.Verdict:
        """Return the verdict if these were the runs of the cases, the further ones not judged.

        An uncalibrated judge never shows that a skill has no effect: errors that are equal in both
        arms shrink every lift.

        Args:
            counts: Of each case, with at least the runs that it has.
        """
        if self.calibrated:
            cases = [
                calibration.JudgedCase(
                    _with_counts(case.with_skill, now.passes_with, now.runs_with),
                    _with_counts(case.without_skill, now.passes_without, now.runs_without),
                )
                for case, now in zip(self.cases, counts, strict=True)
            ]
            return calibration.corrected_verdict(
                cases, self._labels, self.alpha, sampled=self._all_labels_present
            )
        alone = stats.verdict(counts, self.alpha)
        return "too few runs" if alone == "no effect" else alone

    @cached_property
    def tipping_point(self) -> float | None:
        """Leniency, as a fraction, that would undo ``helps`` or ``hurts``; None for neither.

        It is how much more often the judge would have to pass answers in one arm than it should.
        """
        counts = [case.counts for case in self.cases]
        interval, verdict = stats.lift_interval(counts), self.verdict_of(counts)
        if self.calibrated or interval is None or verdict not in {"helps", "hurts"}:
            return None
        return max(0.0, interval.low if verdict == "helps" else -interval.high)

    def agreement(self, *, with_skill: bool) -> calibration.Agreement | None:
        """Return how often the judge is right in an arm; None if it is not calibrated."""
        if not self.calibrated:
            return None
        labels = [label for label in self._labels if label.with_skill is with_skill]
        passed, failed = (
            (
                calibration.answers_of(self.cases, (with_skill, judged)),
                [label.passed for label in labels if label.judged is judged],
            )
            for judged in (True, False)
        )
        return calibration.agreement(passed, failed)

    @cached_property
    def _labels(self) -> list[calibration.Label]:
        index_of = {pair.case: index for index, pair in enumerate(self.pairs)}
        given = self.cell.labels.given if self.cell.labels else ()
        return [
            calibration.Label(index_of[each.case], each.with_skill, each.judged, bool(each.passed))
            for each in given
            if each.case in index_of
        ]

    @property
    def _all_labels_present(self) -> bool:
        return all(label.present for label in (self.cell.labels.given if self.cell.labels else ()))


def _with_counts(judged: calibration.JudgedRuns, passes: int, runs: int) -> calibration.JudgedRuns:
    # A cut answer that the judge did not pass may be counted as a pass.
    fails = min(judged.judged_fails, runs - passes)
    return replace(judged, passes=passes, runs=runs, judged_fails=fails)


def _runs(trial: TrialResult) -> calibration.JudgedRuns:
    decided = [run.by_judge for run in trial.runs]
    judged_as = (decided.count(True), decided.count(False))
    return calibration.JudgedRuns(trial.passes, len(trial.runs), *judged_as)
