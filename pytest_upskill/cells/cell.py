"""A cell, one skill on one model: figures of both arms and what they say of the skill."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from statistics import fmean
from typing import Literal

from pytest_upskill import stats
from pytest_upskill.result import RunResult, TrialResult
from pytest_upskill.skill import GateRule
from pytest_upskill.trial import Arm

CellVerdict = stats.Verdict | Literal["missing data"]

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
    cost_usd: float | None
    """Mean dollars of a run; None where a price is not known."""
    latency_s: float
    """Mean seconds of a run."""


# No slots: cached_property keeps each figure in the instance's dict.
@dataclass(frozen=True, kw_only=True)
class Cell:
    """The trials of one skill on one model."""

    path: str
    """Node id of the case file."""
    case_file: str = ""
    """Path of the case file from the folder that holds ``.upskill``; empty where it is ``path``."""
    skill: str
    model: str
    """Label of the model."""
    resolved: str
    """What the label stands for."""
    place: str = ""
    """Folder that tells the skill from another of the same name; empty where none has it."""
    gate: GateRule
    planned: int
    """Trials of the cell in a whole run."""
    trials: tuple[TrialResult, ...]
    ref: str = ""
    """Git ref whose skill is compared with; empty for none."""
    history: str = ""
    """Why that is not done; empty where it is."""
    past_unknown: bool = False
    """Whether it should have been done."""
    skipped: tuple[str, ...] = ()
    """Cases that were not run, or not in every arm."""

    @property
    def title(self) -> str:
        """The skill's name, with its folder where another skill of the run has the same."""
        return f"{self.skill} ({self.place})" if self.place else self.skill

    @property
    def name(self) -> str:
        """Skill and model, to begin a sentence with."""
        return f"{self.title} on {self.model}"

    @property
    def unmeasured(self) -> list[str]:
        """Cases of which nothing was run."""
        return sorted({*self.skipped} - {trial.case for trial in self.trials})

    @property
    def missing(self) -> int:
        """Runs of both arms without a usable reply."""
        return sum(len(trial.errors) for trial in self.trials)

    @cached_property
    def alpha(self) -> float:
        """Error rate that is left for the last look, where there were looks before it."""
        looks = max((trial.planned for trial in self.trials if trial.early_stop), default=1)
        return stats.last_look_alpha(1 if self.spared else looks)

    @property
    def spared(self) -> int:
        """Runs of both arms that were left out because the verdict was clear."""
        return sum(trial.spared for trial in self.trials)

    @cached_property
    def missing_data(self) -> str | None:
        """Why the missing runs forbid a verdict, None where it stands."""
        if not self.missing:
            return None
        planned = max(len(trial.runs) + len(trial.errors) for trial in self.trials)
        return stats.too_many_missing(self.counts, planned) or self._old_missing

    @cached_property
    def pairs(self) -> list[Pair]:
        """The cases that have valid runs in both arms."""
        return [pair for pair in self._pairs if all(trial.runs for trial in pair)]

    @cached_property
    def old_pairs(self) -> list[Pair]:
        """The cases that have valid runs with the skill as it is and as it was."""
        old = {trial.case: trial for trial in self.trials if trial.arm == "old_skill"}
        return [
            (trial, old[trial.case])
            for trial in self.trials
            if trial.arm == "with_skill" and trial.case in old
            if trial.runs and old[trial.case].runs
        ]

    @cached_property
    def served(self) -> list[str]:
        """Model ids that the API returned."""
        return sorted({name for trial in self.trials for name in trial.served})

    @cached_property
    def asymmetric(self) -> list[str]:
        """Cases whose arms were sent anything different beside the skill: none, ever."""
        pairs = (*self.pairs, *self.old_pairs)
        return [one.case for one, other in pairs if one.prompt_digest != other.prompt_digest]

    @cached_property
    def with_skill(self) -> ArmFigures | None:
        """Figures of the runs with the skill."""
        return self._arm("with_skill")

    @cached_property
    def without_skill(self) -> ArmFigures | None:
        """Figures of the runs without it."""
        return self._arm("without_skill")

    @cached_property
    def old_skill(self) -> ArmFigures | None:
        """Figures of the runs with the skill as it was."""
        return self._arm("old_skill")

    @cached_property
    def counts(self) -> list[stats.CaseCounts]:
        """Passes and valid runs of both arms, a case at a time; none in an arm that is missing."""
        return [
            stats.CaseCounts(one.passes, len(one.runs), other.passes, len(other.runs))
            for one, other in self._pairs
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
    def pass_rate_bounds(self) -> stats.Interval | None:
        """Pass rate with the skill, had all missing runs failed, and had all passed."""
        if not self.missing and self.with_skill is not None:
            return stats.Interval(self.with_skill.pass_rate, self.with_skill.pass_rate)
        trials = [t for t in self.trials if t.arm == "with_skill" and (t.runs or t.errors)]
        if not trials:
            return None
        runs = [len(trial.runs) + len(trial.errors) for trial in trials]
        low = sum(Fraction(t.passes, of) for t, of in zip(trials, runs, strict=True))
        missing = sum(Fraction(len(t.errors), of) for t, of in zip(trials, runs, strict=True))
        return stats.Interval(float(low / len(trials)), float((low + missing) / len(trials)))

    @cached_property
    def lift_bounds(self) -> stats.Interval | None:
        """Lift, had all missing runs been against the skill, and had all been for it."""
        low, high = (
            stats.lift(
                [
                    case.with_missing(len(one.errors), len(other.errors), skill_is_lucky=lucky)
                    for case, (one, other) in zip(self.counts, self._pairs, strict=True)
                ]
            )
            for lucky in (False, True)
        )
        return None if low is None or high is None else stats.Interval(low, high)

    @cached_property
    def verdict(self) -> CellVerdict:
        """What the runs say of the skill."""
        if self.missing_data:
            return "missing data"
        return stats.verdict(self.counts, self.alpha)

    @property
    def repetitive(self) -> bool:
        """Whether the model answers every run alike, so that more runs tell nothing."""
        return self.resolved.startswith("offline:")

    @cached_property
    def runs_needed(self) -> int | None:
        """How many runs of each trial would probably tell; None where that many did, or unknown."""
        # A cell that was spared runs was not short of them.
        open_ = self.verdict == "too few runs" and not self.spared and not self.repetitive
        return stats.runs_needed(self.counts) if open_ else None

    @cached_property
    def token_ratio(self) -> stats.TokenRatio | None:
        """How many times the tokens a run takes with the skill."""
        return stats.token_ratio(self._token_pairs)

    @cached_property
    def tokens_per_pass(self) -> tuple[float | None, float | None]:
        """Tokens of all runs for each that passed, without the skill and with it."""
        with_, without = zip(*self._token_pairs, strict=True) if self.pairs else ((), ())
        return (
            stats.tokens_per_pass(sum(map(sum, without)), sum(one.passes for _, one in self.pairs)),
            stats.tokens_per_pass(sum(map(sum, with_)), sum(one.passes for one, _ in self.pairs)),
        )

    @cached_property
    def pays_for_itself(self) -> bool:
        """Whether a pass takes fewer tokens with the skill."""
        return stats.pays_for_itself(
            tokens_with=sum(sum(with_) for with_, _ in self._token_pairs),
            passes_with=sum(one.passes for one, _ in self.pairs),
            tokens_without=sum(sum(without) for _, without in self._token_pairs),
            passes_without=sum(other.passes for _, other in self.pairs),
        )

    @cached_property
    def _pairs(self) -> list[Pair]:
        """The cases that were tried in both arms, with or without a usable reply."""
        with_, without = (
            {trial.case: trial for trial in self.trials if trial.arm == arm}
            for arm in ("with_skill", "without_skill")
        )
        return [(trial, without[case]) for case, trial in with_.items() if case in without]

    @property
    def _old_missing(self) -> str | None:
        old = [trial for trial in self.trials if trial.arm == "old_skill"]
        missing, valid = sum(len(each.errors) for each in old), sum(len(each.runs) for each in old)
        return stats.too_many_missing_of_arm("with the old skill", missing, missing + valid)

    @property
    def _token_pairs(self) -> list[tuple[list[float], list[float]]]:
        return [(_tokens(one), _tokens(other)) for one, other in self.pairs]

    def _arm(self, arm: Arm) -> ArmFigures | None:
        """Sum up the cases that both arms ran, or all of this arm where none pairs up."""
        paired = {one.case for one, _ in self.pairs}
        valid = [
            trial.runs
            for trial in self.trials
            if trial.arm == arm and trial.runs and (not paired or trial.case in paired)
        ]
        return figures(valid) if valid else None


def told_apart(cells: Iterable[Cell]) -> list[Cell]:
    """Add to skills of the same name where they are."""
    cells = list(cells)
    paths = {
        cell.skill: list(dict.fromkeys(each.path for each in cells if each.skill == cell.skill))
        for cell in cells
    }
    return [
        replace(cell, place=_place(cell.path, paths[cell.skill]) if paths[cell.skill][1:] else "")
        for cell in cells
    ]


def _place(path: str, paths: Collection[str]) -> str:
    """Name a case file by its folder, or by itself where another one is in the same folder."""
    folder = posixpath.dirname(path)
    alone = sum(posixpath.dirname(other) == folder for other in paths) == 1
    return (folder or ".") if alone else path


def figures(valid: Sequence[Sequence[RunResult]]) -> ArmFigures:
    """Average the valid runs within each case, then over the cases."""

    def average(of: Callable[[RunResult], float]) -> float:
        return fmean(fmean(of(run) for run in runs) for runs in valid)

    rates = [Fraction(sum(run.passed for run in runs), len(runs)) for runs in valid]
    completions = [run.completion for runs in valid for run in runs]
    counted = all(completion.tokens is not None for completion in completions)
    priced = all(completion.cost_usd is not None for completion in completions)
    return ArmFigures(
        runs=sum(map(len, valid)),
        passes=sum(run.passed for runs in valid for run in runs),
        # Exact: at the border of a threshold, 0.7 must not come out a hair below itself.
        pass_rate=float(sum(rates) / len(rates)),
        checks_passed=average(lambda run: sum(check.passed for check in run.checks)),
        checks=average(lambda run: len(run.checks)),
        tokens=average(lambda run: run.completion.tokens or 0) if counted else None,
        cost_usd=average(lambda run: run.completion.cost_usd or 0) if priced else None,
        latency_s=average(lambda run: run.completion.latency_s),
    )


def _tokens(trial: TrialResult) -> list[float]:
    return [run.completion.tokens or 0 for run in trial.runs]
