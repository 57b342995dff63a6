"""The cases of a cell with the results of all arms."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from pytest_upskill.figures.arm import ArmFigures, figures
from pytest_upskill.figures.gate import Gate
from pytest_upskill.stats import CaseCounts, Interval, lift, lift_interval
from pytest_upskill.trials.result import TrialResult
from pytest_upskill.trials.trial import ARMS, Arm

CaseStatus = Literal[
    "regressed", "worse", "incomplete", "never passes", "same", "better", "always passes"
]
"""Result of a case, the most urgent first; one that always or never passes in every arm does not
affect the lift."""

_ORDER: tuple[CaseStatus, ...] = get_args(CaseStatus)


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseLine:
    """One case of a cell with its trials in all arms."""

    case: str
    arms: Mapping[Arm, TrialResult]
    """Its trial in each arm that ran; at least one."""
    was: tuple[int, int] | None = None
    """Passes and runs with the old skill, in the baseline or at a git ref; None if not compared."""
    regressed: bool = False
    """Whether the skill regressed, and this case passes less often than before."""

    @property
    def question(self) -> str:
        """What was asked."""
        return next(iter(self.arms.values())).question

    @property
    def failed(self) -> bool:
        """Whether the case failed with the skill."""
        return "with_skill" in self.arms and self.arms["with_skill"].failed

    @property
    def counts(self) -> CaseCounts:
        """Passes and valid runs with and without the skill."""
        arms: tuple[Arm, Arm] = ("with_skill", "without_skill")
        with_, without = (
            (self.arms[arm].passes, len(self.arms[arm].runs)) if arm in self.arms else (0, 0)
            for arm in arms
        )
        return CaseCounts(*with_, *without)

    @property
    def difference(self) -> float | None:
        """Pass rate with the skill minus without, a fraction; None if an arm has no valid run."""
        return lift([self.counts])

    @property
    def interval(self) -> Interval | None:
        """95 % interval of the difference."""
        return lift_interval([self.counts])

    @property
    def status(self) -> CaseStatus:
        """Result of the case."""
        if self.regressed:
            return "regressed"
        if self.difference is None:
            return "incomplete"
        if self.difference:
            return "better" if self.difference > 0 else "worse"
        rates = {trial.passes / len(trial.runs) for trial in self.arms.values() if trial.runs}
        if self.was is not None:
            rates.add(self.was[0] / self.was[1])
        if rates == {0.0}:
            return "never passes"
        return "always passes" if rates == {1.0} else "same"


def case_lines(gate: Gate) -> list[CaseLine]:
    """Return the cases of a gate's cell, the most urgent first."""
    measured = () if gate.comparison is None else gate.comparison.measured
    compared = {case.id: case for case in measured}
    cases: dict[str, dict[Arm, TrialResult]] = {}
    for trial in sorted(gate.cell.counted_trials, key=lambda trial: ARMS.index(trial.arm)):
        cases.setdefault(trial.case, {})[trial.arm] = trial
    lines = []
    for case, arms in cases.items():
        past = compared.get(case)
        lines.append(
            CaseLine(
                case=case,
                arms=arms,
                was=(past.counts.passes_without, past.counts.runs_without) if past else None,
                regressed=bool(past and gate.regressed and past.counts.difference < 0),
            )
        )
    return sorted(lines, key=lambda case: (_ORDER.index(case.status), case.difference or 0.0))


def arm_figures(trial: TrialResult | None) -> ArmFigures | None:
    """Return the figures of one trial, None without a valid run."""
    return figures([trial.runs]) if trial and trial.runs else None
