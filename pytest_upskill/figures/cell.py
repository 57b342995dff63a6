"""A cell, one skill on one model: figures of all arms, lift and verdict.

It gets the results of trials, pairs those of each case, and computes a figure when it is first
read. `Pairs` says which cases enter which figure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Literal

from pytest_upskill import stats
from pytest_upskill.figures.arm import (
    AgentFigures,
    ArmFigures,
    OldPair,
    Pairs,
    agent_figures,
    figures,
    pair_arms,
    token_ratio,
)
from pytest_upskill.figures.judged import Judged
from pytest_upskill.figures.trial_group import TrialGroup
from pytest_upskill.models import is_language_model
from pytest_upskill.trials.result import CellLabels
from pytest_upskill.trials.trial import Arm

CellVerdict = stats.Verdict | Literal["missing data"]


@dataclass(frozen=True, kw_only=True)
class Cell(TrialGroup):
    """The trials of one skill on one model, with and without the skill."""

    version_arms = ("with_skill", "old_skill")
    gate_kind = "gate"

    judge: str = ""
    """Full name of the judge; empty for none."""
    labels: CellLabels | None = None
    """Labels of answers that apply to this cell; None without a labels file."""

    @cached_property
    def look(self) -> int:
        """Number of the look at the verdict: one more each time that runs were added."""
        return max((trial.look for trial in self.counted_trials), default=1)

    @cached_property
    def alpha(self) -> float:
        """Significance level of the verdict at this look, less what an early stop spent of it."""
        level = stats.look_alpha(self.look)
        if self.skipped_runs:
            # The cell stopped at an interim look, whose own test is far stricter than this level.
            return level
        rounds = max(
            (trial.planned for trial in self.counted_trials if trial.early_stop), default=1
        )
        return stats.last_look_alpha(rounds, level)

    @property
    def skipped_runs(self) -> int:
        """Number of runs that were skipped because the verdict was clear, in all arms."""
        return sum(trial.skipped_runs for trial in self.trials)

    @cached_property
    def missing_data_reason(self) -> str | None:
        """Why there is no verdict as runs are missing, None if there is one."""
        # One such run is enough: whatever the others show, it is not the skill's effect.
        if broken := next((trial.broken for trial in self.trials if trial.broken), None):
            return broken
        if not self.missing:
            return None
        return self.doubt if self.pairs.measured else "no case has a valid run in both arms"

    @cached_property
    def doubt(self) -> str | None:
        """Why the verdict could be another one, None if it could not."""
        open_runs, seen = self.open_runs, self._verdict_of(self.counts)
        if open_runs and {seen} != {self._verdict_of(self.counts_if(x)) for x in (False, True)}:
            return f"{open_runs} could change the verdict {seen!r}"
        return None

    @cached_property
    def pairs(self) -> Pairs:
        """The cases that ran with and without the skill."""
        return pair_arms(self.counted_trials)

    @cached_property
    def old_pairs(self) -> list[OldPair]:
        """Cases with valid runs with both the current and the old skill."""
        old = {trial.case: trial for trial in self.old_trials if trial.runs}
        return [
            OldPair(trial, old[trial.case])
            for trial in self.current_trials
            if trial.runs and trial.case in old
        ]

    @property
    def train(self) -> list[str]:
        """Train cases, by which the text was chosen: they do not count towards the lift."""
        return [pair.case for pair in self.pairs.all if pair.is_train]

    @cached_property
    def asymmetric(self) -> list[str]:
        """Cases whose prompts differ between arms in more than the skill; there should be none."""
        return [
            first.case
            for first, second in (*self.pairs.measured, *self.old_pairs)
            if first.prompt_digest != second.prompt_digest
        ]

    @property
    def misses_data(self) -> bool:
        """Whether runs are missing without which there is no decision."""
        return self.missing_data_reason is not None

    @property
    def why_undecidable(self) -> str | None:
        """Why no decision about the cell is possible, None if one is."""
        if len(self.trials) != self.planned:
            return f"{len(self.trials)} of {self.planned} trials ran"
        if self.missing_data_reason:
            return f"missing data: {self.missing_data_reason}"
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
        # All its runs, even if their answers are copies: it can load the skill in some of them.
        with_skill = self.version_arms[0]
        return agent_figures(
            run for trial in self.trials if trial.arm == with_skill for run in trial.runs
        )

    @cached_property
    def counts(self) -> list[stats.CaseCounts]:
        """Passes and valid runs of each case with and without the skill."""
        return [
            stats.CaseCounts(with_.passes, len(with_.runs), without.passes, len(without.runs))
            for with_, without in self.pairs.for_lift
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
        """The lift to report and to compare with thresholds: corrected if there are labels."""
        return self.correction.estimate if self.correction else self.lift

    def counts_if(self, for_skill: bool) -> list[stats.CaseCounts]:
        """Return the counts if all open runs were for the skill, or if all were against it."""
        return [
            stats.CaseCounts(
                *pair.with_skill.counts_if(open_pass=for_skill),
                *pair.without_skill.counts_if(open_pass=not for_skill),
            )
            for pair in self.pairs.for_lift
        ]

    def pass_rate_if(self, for_skill: bool) -> float | None:
        """Return the pass rate with the skill if all open runs were for it, or if none was.

        Corrected by labels, if there are enough of them.
        """
        sent = [trial for trial in self.current_trials if trial.runs or trial.errors]
        trials = [trial for trial in sent if not trial.train] or sent
        if not trials:
            return None
        rates = [Fraction(*trial.counts_if(open_pass=for_skill)) for trial in trials]
        return float(sum(rates) / len(rates)) + self._rate_shift

    def lift_if(self, for_skill: bool) -> float | None:
        """Return the lift if all open runs were for the skill, or if all were against it.

        Corrected by labels, if there are enough of them.
        """
        lift = stats.lift(self.counts_if(for_skill))
        return None if lift is None else lift + self._lift_shift

    @cached_property
    def verdict(self) -> CellVerdict:
        """Verdict about the skill."""
        if self.missing_data_reason:
            return "missing data"
        return "too few runs" if self.doubt else self._verdict_of(self.counts)

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
            pairs=self.pairs.for_lift,
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
        return (
            self.copied
            or not is_language_model(self.resolved)
            or "temperature=0" in self.resolved.split()
        )

    @cached_property
    def runs_needed(self) -> int | None:
        """Runs per trial that would probably be enough; None if they are, or if unknown."""
        if self.verdict != "too few runs" or self.repetitive:
            return None
        # A cell that stopped early did not have too few runs, and further runs are cut too.
        if self.skipped_runs or self.cut_failures:
            return None
        # More runs do not help where the judge is the problem.
        if self.judged and self.judged.uncorrected_verdict != "too few runs":
            return None
        needed = stats.runs_needed(self.counts, self._next_alpha)
        # The exact test can need more runs where its approximation needs none.
        return needed and max(needed, 1 + max(len(trial.runs) for trial in self.trials))

    @property
    def chance_of_enough(self) -> float | None:
        """Probability that ``runs_needed`` will be enough; None without it."""
        if self.runs_needed is None:
            return None
        return stats.chance_of_effect(self.counts, self.runs_needed, self._next_alpha)

    @property
    def _next_alpha(self) -> float:
        """Significance level of the look that adds runs to these."""
        return stats.look_alpha(self.look + 1)

    @property
    def token_ratio(self) -> float | None:
        """Mean tokens of a run with the skill divided by those without; None if not counted."""
        return token_ratio(self.without_skill, self.with_skill)

    @property
    def _lift_shift(self) -> float:
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

    def _arm(self, arm: Arm) -> ArmFigures | None:
        """Return the figures of an arm: of the reported pairs, or of all cases if there is none."""
        paired = {pair.case for pair in self.pairs.reported}
        valid = [
            trial.runs
            for trial in self.counted_trials
            if trial.arm == arm and trial.runs and (not paired or trial.case in paired)
        ]
        return figures(valid) if valid else None
