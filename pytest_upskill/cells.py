"""A cell, one skill on one model: figures of both arms and what they say of the skill."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean

from pytest_upskill import stats
from pytest_upskill.plan import Arm
from pytest_upskill.results import RunResult, TrialResult
from pytest_upskill.skill import GateRule

Pair = tuple[TrialResult, TrialResult]
"""One case with and without the skill, each with a valid run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmFigures:
    """One arm of a cell; each case weighs the same, whatever its number of runs."""

    runs: int
    """Valid runs."""
    passes: int
    """Valid runs in which every check held."""
    pass_rate: float
    checks_passed: float
    """Mean number of checks that held in a run."""
    checks: float
    """Mean number of checks in a run."""
    tokens: float | None
    """Mean tokens of a run, prompt and answer; None where a server did not count."""
    latency_s: float
    """Mean seconds of a run."""


# No slots: cached_property keeps each figure in the instance's dict.
@dataclass(frozen=True, kw_only=True)
class Cell:
    """The trials of one skill on one model."""

    path: str
    """Node id of the case file."""
    skill: str
    model: str
    """Label of the model."""
    resolved: str
    """What the label stands for."""
    gate: GateRule
    planned: int
    """Trials of the cell in a whole run."""
    trials: tuple[TrialResult, ...]

    @property
    def missing(self) -> int:
        """Runs of both arms without a usable reply."""
        return sum(len(trial.errors) for trial in self.trials)

    @cached_property
    def pairs(self) -> list[Pair]:
        """The cases that have valid runs in both arms."""
        arms: dict[Arm, dict[str, TrialResult]] = {"with_skill": {}, "without_skill": {}}
        for trial in self.trials:
            if trial.runs:
                arms[trial.arm][trial.case] = trial
        without = arms["without_skill"]
        return [
            (trial, without[case]) for case, trial in arms["with_skill"].items() if case in without
        ]

    @cached_property
    def asymmetric(self) -> list[str]:
        """Cases whose arms were sent anything different beside the skill: none, ever."""
        return [one.case for one, other in self.pairs if one.prompt_digest != other.prompt_digest]

    @cached_property
    def with_skill(self) -> ArmFigures | None:
        """Figures of the runs with the skill."""
        return self._arm("with_skill")

    @cached_property
    def without_skill(self) -> ArmFigures | None:
        """Figures of the runs without it."""
        return self._arm("without_skill")

    @cached_property
    def counts(self) -> list[stats.CaseCounts]:
        """Passes and valid runs of both arms, a case at a time."""
        return [
            stats.CaseCounts(one.passes, len(one.runs), other.passes, len(other.runs))
            for one, other in self.pairs
        ]

    @cached_property
    def lift(self) -> float | None:
        """Pass rate with the skill minus without."""
        return stats.lift(self.counts)

    @cached_property
    def interval(self) -> stats.Interval | None:
        """The lift's 95 % interval."""
        return stats.lift_interval(self.counts)

    @cached_property
    def verdict(self) -> stats.Verdict:
        """What the runs say of the skill."""
        return stats.verdict(self.counts)

    @cached_property
    def token_ratio(self) -> stats.TokenRatio | None:
        """How many times the tokens a run takes with the skill."""
        return stats.token_ratio([(_tokens(one), _tokens(other)) for one, other in self.pairs])

    def _arm(self, arm: Arm) -> ArmFigures | None:
        """Sum up the cases that both arms ran, or all of this arm where none pairs up."""
        paired = {one.case for one, _ in self.pairs}
        valid = [
            trial.runs
            for trial in self.trials
            if trial.arm == arm and trial.runs and (not paired or trial.case in paired)
        ]
        return figures(valid) if valid else None


def figures(valid: Sequence[Sequence[RunResult]]) -> ArmFigures:
    """Average the valid runs within each case, then over the cases."""

    def average(of: Callable[[RunResult], float]) -> float:
        return fmean(fmean(of(run) for run in runs) for runs in valid)

    counted = all(run.completion.tokens is not None for runs in valid for run in runs)
    return ArmFigures(
        runs=sum(map(len, valid)),
        passes=sum(run.passed for runs in valid for run in runs),
        pass_rate=average(lambda run: run.passed),
        checks_passed=average(lambda run: sum(check.passed for check in run.checks)),
        checks=average(lambda run: len(run.checks)),
        tokens=average(lambda run: run.completion.tokens or 0) if counted else None,
        latency_s=average(lambda run: run.completion.latency_s),
    )


def _tokens(trial: TrialResult) -> list[float]:
    return [run.completion.tokens or 0 for run in trial.runs]
