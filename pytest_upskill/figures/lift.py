"""The lift of a cell: figures of its arms, the interval, the verdict, and its limits.

A figure is computed when it is first read.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import ceil
from typing import ClassVar, Literal

from pytest_upskill import stats
from pytest_upskill.figures.arm import (
    AgentFigures,
    ArmFigures,
    Pair,
    agent_figures,
    figures_of_runs,
)
from pytest_upskill.figures.judged import Judged
from pytest_upskill.figures.thresholds import Problem, Thresholds, misses
from pytest_upskill.figures.trial_group import TrialGroup
from pytest_upskill.figures.wording import bounds, estimate, percent, points
from pytest_upskill.project.messages import counted
from pytest_upskill.stats.calibration import Correction
from pytest_upskill.trials.result import RunResult
from pytest_upskill.trials.trial import Arm

CellVerdict = stats.Verdict | Literal["missing data"]

_REASONS: Mapping[CellVerdict, str] = {
    "hurts": "the skill hurts",
    "no effect": "the skill has no effect",
    "too few runs": "too few runs to tell",
}
"""Why a gate fails, by the verdict that fails it."""

_NEXT_STEPS: Mapping[CellVerdict, str] = {
    "hurts": "read the answers that fail only with the skill, and correct or remove what misled "
    "the model",
    "no effect": "remove the skill, write harder cases, which a model fails without it, or change "
    "the gate",
    "too few runs": "measure more runs or cases, add to the skill what the answers that fail with "
    "it lack, or change the gate",
}

_JUDGED_PAST = (
    "a judge decided both versions, and no labels show its errors about the old one: read the "
    "answers before you change the skill"
)
"""Caveat about a regression that a judge found."""


@dataclass(frozen=True)
class Lift:
    """How much more often a skill's cases pass with it than without it."""

    cell: TrialGroup

    gate_name: ClassVar[str] = "gate"
    """The first word of the name of the cell's gate."""
    unit: ClassVar[str] = "case"
    units: ClassVar[str] = "cases"
    """What its trials are of."""
    under_test: ClassVar[str] = " with the skill"
    """The arm that can fail, to follow the verb; empty if there is no other."""
    subject: ClassVar[str] = "the skill"
    """What becomes worse in a regression."""

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
        """Why the verdict could be another one, None if it could not."""
        open_runs, seen = self.cell.open_runs, self._verdict_of(self.counts)
        if open_runs and {seen} != {self._verdict_of(self.counts_if(x)) for x in (False, True)}:
            return f"{open_runs} could change the verdict {seen!r}"
        return None

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
        """Those with valid runs in both arms."""
        return [pair for pair in self.pairs if pair.with_skill.runs and pair.without_skill.runs]

    @property
    def misses_data(self) -> bool:
        """Whether runs are missing without which there is no decision."""
        return self.missing_data_reason is not None

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
        valid = defaultdict[Arm, list[Sequence[RunResult]]](list)
        for trial in self.cell.counted_trials:
            if trial.runs and (not paired or trial.case in paired):
                valid[trial.arm].append(trial.runs)
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
        lift, interval = stats.lift(self.counts), stats.lift_interval(self.counts)
        return None if lift is None or interval is None else stats.Estimate(lift, *interval)

    @cached_property
    def changes(self) -> Counter[str]:
        """How many cases are ``better``, ``unchanged`` and ``worse`` with the skill."""
        differences = [case.difference for case in self.counts if case.usable]
        return Counter(
            "better" if each > 0 else "worse" if each < 0 else "unchanged" for each in differences
        )

    @property
    def in_words(self) -> str:
        """The result: ``+34 points: 6 of 10 cases better, 3 unchanged, 1 worse``.

        Empty if no case has a valid run in both arms.
        """
        if self.deciding is None:
            return ""
        changes, cases = self.changes, counted(self.changes.total(), "case")
        rest = (f"{changes[what]} {what}" for what in ("unchanged", "worse") if changes[what])
        first = f"{changes['better']} of {cases} better"
        return f"{points(self.deciding.estimate)} points: {', '.join([first, *rest])}"

    @property
    def correction(self) -> Correction | None:
        """The lift, corrected by labels; None unless there are enough of them."""
        return self.judged.correction if self.judged else None

    @property
    def deciding(self) -> stats.Estimate | None:
        """The lift to report and to compare with thresholds: corrected if there are labels."""
        return self.correction.estimate if self.correction else self.observed

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
        return lift + self.correction.lift - self.observed.estimate

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
        cell = self.cell
        if not cell.judge:
            return None
        judged = Judged(
            judge=cell.judge,
            pairs=self.counting_pairs,
            labels=cell.labels,
            alpha=self.alpha,
        )
        return judged if judged.decides else None

    @property
    def uncalibrated(self) -> bool:
        """Whether the verdict rests on a judge that no labels correct."""
        return self.judged is not None and not self.judged.calibrated

    @property
    def repetitive(self) -> bool:
        """Whether the model gives the same answer in every run, so that more runs add nothing."""
        cell = self.cell
        return cell.copied or cell.is_offline or "temperature=0" in cell.resolved.split()

    @cached_property
    def runs_needed(self) -> int | None:
        """Runs of a trial with the skill that would probably be enough.

        Those without it are to grow by the same factor. None if they are enough, or if unknown.
        """
        if self.verdict != "too few runs" or self.repetitive:
            return None
        # A cell that stopped early did not have too few runs, and further runs are cut too.
        if self.skipped_runs or self.cell.cut_failures:
            return None
        # More runs do not help where the judge is the problem.
        if self.judged and self.judged.uncorrected_verdict != "too few runs":
            return None
        needed = stats.runs_needed(self.counts, self._next_alpha)
        # The exact test can need more runs where its approximation needs none.
        runs = self._runs("with_skill")
        return needed and max(ceil(needed * runs / self._mean_runs), 1 + runs)

    @property
    def baseline_runs_needed(self) -> int | None:
        """Runs without the skill that go with them; None if they are as many."""
        with_, without = self._runs("with_skill"), self._runs("without_skill")
        if self.runs_needed is None or with_ == without:
            return None
        return ceil(self.runs_needed * without / with_)

    @property
    def chance_of_enough(self) -> float | None:
        """Probability that ``runs_needed`` will be enough; None without it."""
        if self.runs_needed is None:
            return None
        mean = ceil(self.runs_needed * self._mean_runs / self._runs("with_skill"))
        return stats.chance_of_effect(self.counts, mean, self._next_alpha)

    def _runs(self, arm: Arm) -> int:
        """Return the number of runs of a trial in an arm."""
        trials = self.cell.trials
        return max((len(trial.runs) for trial in trials if trial.arm == arm), default=0)

    @property
    def _mean_runs(self) -> float:
        return (self._runs("with_skill") + self._runs("without_skill")) / 2

    @property
    def _next_alpha(self) -> float:
        """Significance level of the look that adds runs to these."""
        return stats.look_alpha(self.look + 1)

    @property
    def token_ratio(self) -> float | None:
        """Mean tokens of a run with the skill divided by those without; None if not counted."""
        with_, without = self.arms.get("with_skill"), self.arms.get("without_skill")
        if with_ is None or without is None or not with_.tokens or not without.tokens:
            return None
        return with_.tokens / without.tokens

    @property
    def sentence(self) -> str:
        """Verdict, pass rates and lift with its interval."""
        with_, without = self.arms.get("with_skill"), self.arms.get("without_skill")
        if with_ is None or without is None or self.observed is None:
            return "no case ran in both arms"
        needed = f", about {self.runs_needed} are needed" if self.runs_needed else ""
        by = " by an uncalibrated judge" if self.uncalibrated else ""
        judged = "judged lift" if self.judged else "lift"
        sentence = (
            f"{self.verdict}{by}{needed}: passed {percent(without.pass_rate)}% without, "
            f"{percent(with_.pass_rate)}% with, "
            f"{judged} {points(self.observed.estimate)} points {bounds(self.observed)}"
        )
        if self.correction:
            sentence += f", corrected {estimate(self.correction.estimate)}"
        return f"{sentence}, {self.tipping_point}" if self.tipping_point else sentence

    @property
    def tipping_point(self) -> str:
        """How wrong an uncalibrated judge would have to be; empty without such a verdict."""
        least = self.judged.tipping_point if self.judged else None
        if least is None or self.doubt:
            return ""
        favors = "favors" if self.verdict == "helps" else "disfavors"
        return f"holds unless the judge {favors} the skill by more than {points(least)[1:]} points"

    def details(self, *, regressed: bool) -> list[str]:
        """Return lines to follow the text of a gate."""
        if not regressed:
            return []
        return [f"lift: {self.sentence}", *([_JUDGED_PAST] if self.judged else [])]

    @property
    def next_step(self) -> str:
        """Advice about a gate that failed without a regression."""
        general = "correct the skill where answers fail with it, or change the gate"
        return f"next: {_NEXT_STEPS.get(self.verdict, general)}"

    def problems(self, thresholds: Thresholds) -> Iterator[Problem]:
        """Yield the thresholds that the cell misses, or could miss because of open runs."""
        corrected = "corrected " if self.correction else ""
        rate = f"{corrected}pass rate with the skill"
        least = thresholds.min_mean_pass_rate
        yield from misses(self.pass_rate_if, least, f"{rate} is under {{:g}}%")
        least = thresholds.min_lift
        yield from misses(self.lift_if, least, f"{corrected}lift is under {{:+g}} points")
        if self.uncalibrated and "uncalibrated" in thresholds.fail_on:
            yield Problem("it rests on an uncalibrated judge", is_certain=True)
        # What an uncalibrated judge decides against a skill may be its own mistake.
        is_doubtful = self.uncalibrated and self.verdict == "hurts"
        if self.verdict.replace(" ", "-") in thresholds.fail_on and not is_doubtful:
            yield Problem(_REASONS[self.verdict], is_certain=True)
