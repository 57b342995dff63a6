"""The lift of a cell: figures of its arms, the interval, the verdict, and runs that it lacks.

A figure is computed when it is first read.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import ceil
from typing import Literal, NamedTuple

from pytest_upskill import stats
from pytest_upskill.figures.arm import (
    AgentFigures,
    ArmFigures,
    Pair,
    agent_figures,
    figures_of_runs,
)
from pytest_upskill.figures.judged import Judged
from pytest_upskill.figures.trial_group import TrialGroup
from pytest_upskill.models.model import varies
from pytest_upskill.project.grouping import grouped
from pytest_upskill.stats.calibration import Correction
from pytest_upskill.trials.trial import Arm

CellVerdict = stats.Verdict | Literal["missing data"]

_PROBABLE = 0.5
"""Chance below which a number of further runs is no advice."""


class MoreRuns(NamedTuple):
    """Runs of a trial in each arm that would probably be enough for a verdict."""

    with_skill: int
    without_skill: int
    chance: float
    """Probability that they will be enough."""


def changes_of(cases: Iterable[stats.CaseCounts]) -> Counter[str]:
    """Return how many of the cases with valid runs are ``better``, ``unchanged`` and ``worse``."""
    differences = (case.difference for case in cases if case.usable)
    return Counter("better" if d > 0 else "worse" if d < 0 else "unchanged" for d in differences)


def observed_lift(cases: Sequence[stats.CaseCounts]) -> stats.Estimate | None:
    """Return the lift with its interval, as fractions; None without data."""
    lift, interval = stats.lift(cases), stats.lift_interval(cases)
    return None if lift is None or interval is None else stats.Estimate(lift, *interval)


@dataclass(frozen=True)
class Lift:
    """How much more often a skill's cases pass with it than without it."""

    cell: TrialGroup

    @cached_property
    def look(self) -> int:
        """Number of the look at the verdict: one more each time that runs were added."""
        return max((trial.look for trial in self.cell.counted_trials), default=1)

    @property
    def rounds(self) -> tuple[int, int]:
        """How many rounds with an early stop were run and planned; 1 and 1 without one."""
        trials = [trial for trial in self.cell.counted_trials if trial.early_stop]
        done = max((trial.planned - trial.skipped_runs for trial in trials), default=1)
        return max(done, 1), max((trial.planned for trial in trials), default=1)

    @cached_property
    def alpha(self) -> float:
        """Significance level of the verdict: of its look, and after its rounds."""
        return stats.early_alpha(*self.rounds, stats.look_alpha(self.look))

    @property
    def skipped_runs(self) -> int:
        """Number of runs that were skipped because the verdict was clear, in all arms."""
        return sum(trial.skipped_runs for trial in self.cell.trials)

    @cached_property
    def missing_data_reason(self) -> str | None:
        """Why there is no verdict as runs are missing, None if there is one."""
        # One such run is enough: whatever the others show, it is not the skill's effect.
        if broken := next((trial.broken for trial in self.cell.trials if trial.broken), None):
            return broken
        if not self.cell.missing:
            return None
        return self.doubt if self.measured_pairs else "no case has a valid run in both arms"

    @cached_property
    def doubt(self) -> str | None:
        """Why the verdict could be another one, None if it could not.

        With missing runs the verdict is then ``missing data``, with cut answers alone ``too few
        runs``.
        """
        if len(self.possible_verdicts) == 1:
            return None
        return f"{self.cell.open_runs} could change the verdict {self._verdict_of(self.counts)!r}"

    @property
    def possible_counts(self) -> list[list[stats.CaseCounts]]:
        """The counts of the valid runs alone, and with all open runs for it or against it."""
        return [self.counts, *map(self.counts_if, (False, True) if self.cell.open_runs else ())]

    @cached_property
    def possible_verdicts(self) -> frozenset[CellVerdict]:
        """The verdicts about these counts."""
        return frozenset(map(self._verdict_of, self.possible_counts))

    @cached_property
    def pairs(self) -> list[Pair]:
        """The cases that ran with and without the skill, even if all their runs are missing."""
        trials = self.cell.counted_trials
        without = {trial.case: trial for trial in trials if trial.arm == "without_skill"}
        return [
            Pair(trial, without[trial.case])
            for trial in trials
            if trial.arm == "with_skill" and trial.case in without
        ]

    @cached_property
    def counting_pairs(self) -> list[Pair]:
        """All but train cases, by which the text was chosen: those of lift and verdict."""
        return [pair for pair in self.pairs if not pair.with_skill.train]

    @cached_property
    def measured_pairs(self) -> list[Pair]:
        """All pairs with valid runs in both arms, train cases too."""
        return [pair for pair in self.pairs if pair.with_skill.runs and pair.without_skill.runs]

    @property
    def why_undecidable(self) -> str | None:
        """Why no decision about the cell is possible, None if one is."""
        if self.missing_data_reason:
            return f"missing data: {self.missing_data_reason}"
        prompts: dict[str, str] = {}
        for trial in self.cell.counted_trials:
            # There should be no such case: only the skill may differ.
            if trial.runs and prompts.setdefault(trial.case, trial.prompt_digest) != (
                trial.prompt_digest
            ):
                return f"the arms of {trial.case!r} were sent different prompts"
        return None

    @cached_property
    def arms(self) -> Mapping[Arm, ArmFigures]:
        """Figures of each arm that has valid runs: of measured pairs, or of all cases without any.

        Train cases are in them only if all are such.
        """
        counting = [pair for pair in self.measured_pairs if not pair.with_skill.train]
        paired = {pair.case for pair in counting or self.measured_pairs}
        valid = grouped(
            (trial.arm, trial.runs)
            for trial in self.cell.counted_trials
            if trial.runs and (not paired or trial.case in paired)
        )
        return {arm: figures_of_runs(runs, self.cell.at_k) for arm, runs in valid.items()}

    @cached_property
    def agent(self) -> AgentFigures | None:
        """What an agent did in the runs with the skill; None if the model is no agent's."""
        # All its runs, even if their answers are copies: it can load the skill in some of them.
        return agent_figures(
            run for trial in self.cell.trials if trial.arm == "with_skill" for run in trial.runs
        )

    @cached_property
    def counts(self) -> list[stats.CaseCounts]:
        """Passes and valid runs of each case with and without the skill."""
        return [
            stats.CaseCounts(with_.passes, len(with_.runs), without.passes, len(without.runs))
            for with_, without in self.counting_pairs
        ]

    @cached_property
    def observed(self) -> stats.Estimate | None:
        """Pass rate with the skill minus without, a fraction; None without data."""
        return observed_lift(self.counts)

    @cached_property
    def changes(self) -> Counter[str]:
        """How many cases are ``better``, ``unchanged`` and ``worse`` with the skill."""
        return changes_of(self.counts)

    @property
    def correction(self) -> Correction | None:
        """The lift, corrected by labels; None unless there are enough of them."""
        return self.judged.correction if self.judged else None

    @property
    def deciding(self) -> stats.Estimate | None:
        """The lift to report and to compare with thresholds: corrected if there are labels."""
        return self.correction.lift if self.correction else self.observed

    def counts_if(self, for_skill: bool) -> list[stats.CaseCounts]:
        """Return the counts if all open runs were for the skill, or if all were against it."""
        return [
            stats.CaseCounts(
                *pair.with_skill.counts_if(open_pass=for_skill),
                *pair.without_skill.counts_if(open_pass=not for_skill),
            )
            for pair in self.counting_pairs
        ]

    def pass_rate_if(self, for_skill: bool) -> float | None:
        """Return the pass rate with the skill if all open runs were for it, or if none was.

        Corrected by labels, if there are enough of them.
        """
        sent = [trial for trial in self.cell.current_trials if trial.runs or trial.errors]
        trials = [trial for trial in sent if not trial.train] or sent
        if not trials:
            return None
        rates = [Fraction(*trial.counts_if(open_pass=for_skill)) for trial in trials]
        shift = 0.0
        if self.correction and (with_skill := self.arms.get("with_skill")):
            shift = self.correction.with_skill - with_skill.pass_rate
        return float(sum(rates) / len(rates)) + shift

    def lift_if(self, for_skill: bool) -> float | None:
        """Return the lift if all open runs were for the skill, or if all were against it.

        Corrected by labels, if there are enough of them.
        """
        lift = stats.lift(self.counts_if(for_skill))
        if lift is None or self.correction is None or self.observed is None:
            return lift
        return lift + self.correction.lift.estimate - self.observed.estimate

    @cached_property
    def verdict(self) -> CellVerdict:
        """Verdict about the skill."""
        if self.missing_data_reason:
            return "missing data"
        return "too few runs" if self.doubt else self._verdict_of(self.counts)

    def _verdict_of(self, counts: Sequence[stats.CaseCounts]) -> stats.Verdict:
        """Return the verdict about the cell's cases if these were their runs."""
        return self.judged.verdict_of(counts) if self.judged else stats.verdict(counts, self.alpha)

    @cached_property
    def judged(self) -> Judged | None:
        """What the judge decided; None if it could not change the outcome of a run."""
        if not self.cell.judge:
            return None
        judged = Judged(cell=self.cell, pairs=self.counting_pairs, alpha=self.alpha)
        return judged if judged.decides else None

    @property
    def uncalibrated(self) -> bool:
        """Whether the verdict rests on a judge that no labels correct."""
        return self.judged is not None and not self.judged.calibrated

    @cached_property
    def lacks_runs(self) -> bool:
        """Whether more runs or cases are what the verdict lacks, and not something else first."""
        with_skill = self.arms.get("with_skill")
        is_idle = self.agent is not None and not self.agent.calls
        # A cell that stopped early did not have too few runs, and further runs are cut too.
        explained = self.skipped_runs or self.cell.cut_failures or self.cell.copied or is_idle
        # A judge that is always right would have enough: labels are what the verdict lacks.
        by_judge = self.judged and stats.verdict(self.counts, self.alpha) != "too few runs"
        passes = with_skill is not None and with_skill.passes > 0
        return self.verdict == "too few runs" and passes and not (explained or by_judge)

    @cached_property
    def more_runs(self) -> MoreRuns | None:
        """Runs that would probably be enough; None if there are none, or if that is unknown."""
        if not self.lacks_runs or not varies(self.cell.resolved):
            return None
        runs, baseline = (
            max((len(trial.runs) for trial in self.cell.trials if trial.arm == arm), default=0)
            for arm in ("with_skill", "without_skill")
        )
        mean, next_alpha = (runs + baseline) / 2, stats.look_alpha(self.look + 1)
        needed = stats.runs_needed(self.counts, next_alpha)
        if needed is None:
            return None
        # The exact test can need more runs where its approximation needs none.
        more = max(ceil(needed * runs / mean), 1 + runs)
        chance = stats.chance_of_effect(self.counts, ceil(more * mean / runs), next_alpha) or 0.0
        return MoreRuns(more, ceil(more * baseline / runs), chance) if chance >= _PROBABLE else None

    @property
    def runs_needed(self) -> int | None:
        """How many with the skill; None likewise."""
        return self.more_runs.with_skill if self.more_runs else None

    @property
    def token_ratio(self) -> float | None:
        """Mean tokens of a run with the skill divided by those without; None if not counted."""
        with_, without = self.arms.get("with_skill"), self.arms.get("without_skill")
        if with_ is None or without is None or not with_.tokens or not without.tokens:
            return None
        return with_.tokens / without.tokens
