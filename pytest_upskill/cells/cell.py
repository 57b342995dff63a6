"""A cell, one skill on one model: figures of all arms, lift and verdict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Literal

from pytest_upskill import stats
from pytest_upskill.cells.agent import AgentFigures, agent_figures
from pytest_upskill.cells.arm import ArmFigures, figures
from pytest_upskill.cells.judged import Judged, Pair
from pytest_upskill.cells.trial_group import TrialGroup
from pytest_upskill.trials.result import CellLabels, TrialResult
from pytest_upskill.trials.trial import Arm

CellVerdict = stats.Verdict | Literal["missing data"]


@dataclass(frozen=True, kw_only=True)
class Cell(TrialGroup):
    """The trials of one skill on one model, with and without the skill."""

    arms = ("with_skill", "old_skill")

    judge: str = ""
    """Full name of the judge; empty for none."""
    labels: CellLabels | None = None
    """Labels of answers that apply to this cell; None without a labels file."""

    @cached_property
    def alpha(self) -> float:
        """Significance level of the verdict, corrected for the looks of an early stop."""
        looks = max((trial.planned for trial in self.trials if trial.early_stop), default=1)
        return stats.last_look_alpha(1 if self.spared else looks)

    @property
    def spared(self) -> int:
        """Number of runs that were skipped because the verdict was clear, in all arms."""
        return sum(trial.spared for trial in self.trials)

    @cached_property
    def missing_data(self) -> str | None:
        """Why too many runs are missing for a verdict, None if there are enough."""
        if not self.missing:
            return None
        # One such run is enough: whatever the others show, it is not the skill's effect.
        if broken := next((trial.broken for trial in self.trials if trial.broken), None):
            return broken
        planned = max(len(trial.runs) + len(trial.errors) for trial in self.trials)
        return stats.too_many_missing(self.counts, planned, self._verdict_of) or self._old_missing

    @cached_property
    def pairs(self) -> list[Pair]:
        """Cases with valid runs both with and without the skill."""
        return [pair for pair in self._all_pairs if all(trial.runs for trial in pair)]

    @cached_property
    def old_pairs(self) -> list[Pair]:
        """Cases with valid runs with both the current and the old skill."""
        old = {trial.case: trial for trial in self.before if trial.runs}
        return [(each, old[each.case]) for each in self.now if each.case in old and each.runs]

    @cached_property
    def asymmetric(self) -> list[str]:
        """Cases whose prompts differ between arms in more than the skill; there should be none."""
        pairs = (*self.pairs, *self.old_pairs)
        return [one.case for one, other in pairs if one.prompt_digest != other.prompt_digest]

    @property
    def why_undecidable(self) -> str | None:
        """Why no decision about the cell is possible, None if one is."""
        if len(self.trials) != self.planned:
            return f"{len(self.trials)} of {self.planned} trials ran"
        if self.missing_data:
            return f"missing data: {self.missing_data}"
        if self.asymmetric:
            return f"the arms of {self.asymmetric[0]!r} were sent different prompts"
        return None

    @cached_property
    def with_skill(self) -> ArmFigures | None:
        """Figures of the runs with the skill."""
        return self._arm("with_skill")

    @cached_property
    def without_skill(self) -> ArmFigures | None:
        """Figures of the runs without the skill."""
        return self._arm("without_skill")

    @cached_property
    def old_skill(self) -> ArmFigures | None:
        """Figures of the runs with the old skill."""
        return self._arm("old_skill")

    @cached_property
    def agent(self) -> AgentFigures | None:
        """What an agent did in the runs with the skill; None if the model is no agent's."""
        return agent_figures(run for trial in self.now for run in trial.runs)

    @cached_property
    def counts(self) -> list[stats.CaseCounts]:
        """Passes and valid runs of each case with and without the skill."""
        return [
            stats.CaseCounts(one.passes, len(one.runs), other.passes, len(other.runs))
            for one, other in self._lift_pairs
        ]

    @cached_property
    def lift(self) -> stats.Estimate | None:
        """Pass rate with the skill minus without, a fraction; None without data."""
        lift, interval = stats.lift(self.counts), stats.lift_interval(self.counts)
        return None if lift is None or interval is None else stats.Estimate(lift, *interval)

    @property
    def correction(self) -> stats.Correction | None:
        """The lift, corrected by labels; None unless there are enough of them."""
        return self.judged.correction if self.judged else None

    @property
    def deciding_lift(self) -> stats.Estimate | None:
        """The lift that verdict and gate are decided by: corrected where there are labels."""
        return self.correction.estimate if self.correction else self.lift

    @cached_property
    def pass_rate_bounds(self) -> stats.Interval | None:
        """Corrected pass rate with the skill if all missing runs failed, and if all passed."""
        trials = [trial for trial in self.now if trial.runs or trial.errors]
        trials = [trial for trial in trials if not trial.train] or trials
        if not trials:
            return None
        runs = [len(trial.runs) + len(trial.errors) for trial in trials]
        low = sum(Fraction(t.passes, of) for t, of in zip(trials, runs, strict=True))
        missing = sum(Fraction(len(t.errors), of) for t, of in zip(trials, runs, strict=True))
        least, most = low / len(trials), (low + missing) / len(trials)
        shift = self._rate_shift
        return stats.Interval(float(least) + shift, float(most) + shift)

    @cached_property
    def lift_bounds(self) -> stats.Interval | None:
        """Corrected lift if all missing runs were against the skill, and if all were for it."""
        low, high = (
            stats.lift(
                [
                    case.with_missing(len(one.errors), len(other.errors), skill_is_lucky=lucky)
                    for case, (one, other) in zip(self.counts, self._lift_pairs, strict=True)
                ]
            )
            for lucky in (False, True)
        )
        if low is None or high is None:
            return None
        shift = self._shift
        return stats.Interval(low + shift, high + shift)

    @cached_property
    def verdict(self) -> CellVerdict:
        """Verdict about the skill."""
        if self.missing_data:
            return "missing data"
        return self._verdict_of(self.counts)

    def _verdict_of(self, counts: Sequence[stats.CaseCounts]) -> stats.Verdict:
        """Return the verdict about the cell's cases if these were their runs."""
        if self.judged:
            return self.judged.verdict_of(counts)
        return stats.verdict(counts, self.alpha)

    @cached_property
    def judged(self) -> Judged | None:
        """What the judge decided; None if it could not change the outcome of a run."""
        if not self.judge:
            return None
        judged = Judged(
            judge=self.judge,
            pairs=self._lift_pairs,
            labels=self.labels,
            alpha=self.alpha,
            missing_trials=self.planned - len(self.trials),
        )
        return judged if judged.decides else None

    @property
    def uncalibrated(self) -> bool:
        """Whether the verdict rests on a judge that no labels correct."""
        return self.judged is not None and not self.judged.calibrated

    @property
    def repetitive(self) -> bool:
        """Whether the model gives the same answer in every run, so that more runs add nothing."""
        return self.resolved.startswith("offline:") or "temperature=0" in self.resolved.split()

    @cached_property
    def runs_needed(self) -> int | None:
        """Runs per trial that would probably be enough; None if they are, or if unknown."""
        # A cell that stopped early did not have too few runs.
        open_ = self.verdict == "too few runs" and not self.spared and not self.repetitive
        # More runs do not help where the judge is the problem.
        open_ = open_ and (self.judged is None or self.judged.uncorrected_verdict == "too few runs")
        return stats.runs_needed(self.counts) if open_ else None

    @cached_property
    def token_ratio(self) -> stats.TokenRatio | None:
        """Ratio of tokens of a run, with the skill to without."""
        pairs = self._reported_pairs
        return stats.token_ratio([(_tokens(one), _tokens(other)) for one, other in pairs])

    @cached_property
    def tokens_per_pass(self) -> tuple[float | None, float | None]:
        """Tokens of all runs per passed run, without and with the skill."""
        with_, without = self._totals
        return stats.tokens_per_pass(*without), stats.tokens_per_pass(*with_)

    @cached_property
    def pays_for_itself(self) -> bool:
        """Whether a passed run takes fewer tokens with the skill."""
        (tokens_with, passes_with), (tokens_without, passes_without) = self._totals
        return stats.pays_for_itself(
            tokens_with=tokens_with,
            passes_with=passes_with,
            tokens_without=tokens_without,
            passes_without=passes_without,
        )

    @property
    def _shift(self) -> float:
        """Correction of the judged lift by labels."""
        if self.correction is None or self.lift is None:
            return 0.0
        return self.correction.lift - self.lift.estimate

    @property
    def _rate_shift(self) -> float:
        """Correction of the judged pass rate with the skill by labels."""
        if self.correction is None or self.with_skill is None:
            return 0.0
        return self.correction.with_skill - self.with_skill.pass_rate

    @cached_property
    def _all_pairs(self) -> list[Pair]:
        """Cases that ran with and without the skill, even if runs are missing."""
        without = {trial.case: trial for trial in self.trials if trial.arm == "without_skill"}
        return [(trial, without[trial.case]) for trial in self.now if trial.case in without]

    @cached_property
    def _lift_pairs(self) -> list[Pair]:
        """The pairs that count towards the lift: all but train cases."""
        return [pair for pair in self._all_pairs if not pair[0].train]

    @cached_property
    def _reported_pairs(self) -> list[Pair]:
        """The pairs that are reported: those without train cases, unless there are no others."""
        return [pair for pair in self.pairs if not pair[0].train] or self.pairs

    @property
    def train(self) -> list[str]:
        """Train cases, by which the text was chosen: they do not count towards the lift."""
        return [one.case for one, _ in self._all_pairs if one.train]

    @property
    def _old_missing(self) -> str | None:
        missing = sum(len(trial.errors) for trial in self.before)
        valid = sum(len(trial.runs) for trial in self.before)
        return stats.too_many_missing_of_arm("with the old skill", missing, missing + valid)

    @property
    def _totals(self) -> list[tuple[float, int]]:
        """Tokens and passes of all runs of the reported cases, with the skill and without it."""
        arms = [[pair[arm] for pair in self._reported_pairs] for arm in (0, 1)]
        return [(sum(sum(_tokens(t)) for t in arm), sum(t.passes for t in arm)) for arm in arms]

    def _arm(self, arm: Arm) -> ArmFigures | None:
        """Return the figures of an arm: of the reported pairs, or of all cases if there is none."""
        paired = {one.case for one, _ in self._reported_pairs}
        valid = [
            trial.runs
            for trial in self.trials
            if trial.arm == arm and trial.runs and (not paired or trial.case in paired)
        ]
        return figures(valid) if valid else None


def _tokens(trial: TrialResult) -> list[float]:
    return [run.completion.tokens or 0 for run in trial.runs]
