"""Trials of the same case in two arms, which the figures of a cell compare."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from pytest_upskill.trials.result import TrialResult


class Pair(NamedTuple):
    """Trials of one case with and without the skill."""

    with_skill: TrialResult
    without_skill: TrialResult

    @property
    def case(self) -> str:
        """Id of the case."""
        return self.with_skill.case

    @property
    def is_train(self) -> bool:
        """Whether the skill's text was chosen by this case: it does not count towards the lift."""
        return self.with_skill.train


class OldPair(NamedTuple):
    """Trials of one case with the current skill and with the old one."""

    now: TrialResult
    then: TrialResult


@dataclass(frozen=True)
class Pairs:
    """The cases that ran with and without the skill, and which of them a figure uses."""

    all: Sequence[Pair]
    """Every such case, even if all its runs are missing."""

    @cached_property
    def for_lift(self) -> list[Pair]:
        """All but train cases: lift and verdict, which missing runs can rule out."""
        return [pair for pair in self.all if not pair.is_train]

    @cached_property
    def measured(self) -> list[Pair]:
        """Those with valid runs in both arms."""
        return [pair for pair in self.all if pair.with_skill.runs and pair.without_skill.runs]

    @cached_property
    def reported(self) -> list[Pair]:
        """The measured ones but train cases, unless all are such: pass rates and tokens."""
        return [pair for pair in self.measured if not pair.is_train] or self.measured


def pair_arms(trials: Sequence[TrialResult]) -> Pairs:
    """Return the cases of a cell's trials that ran with and without the skill, in their order."""
    without = {trial.case: trial for trial in trials if trial.arm == "without_skill"}
    return Pairs(
        [
            Pair(trial, without[trial.case])
            for trial in trials
            if trial.arm == "with_skill" and trial.case in without
        ]
    )
