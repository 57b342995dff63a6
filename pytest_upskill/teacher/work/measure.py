"""Trials for a teacher, and the counts of their passes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from pytest_upskill.formats.skill import Case, Skill
from pytest_upskill.model import Model
from pytest_upskill.stats import CaseCounts
from pytest_upskill.trials.result import TrialResult
from pytest_upskill.trials.trial import Arm, Trial, plan

TRAIN_RUNS = 3
"""Runs of each train case with each candidate."""

SCREENING = 500
"""Index of the first screening run; what screening sees is never counted."""

Counts = Mapping[str, tuple[int, int]]
"""Passes and runs of each case by id."""


def trials_of(
    skill: Skill,
    cases: Iterable[Case],
    models: Iterable[Model],
    *,
    arm: Arm,
    runs: int,
    first_run: int = 0,
    max_tokens: int,
) -> list[Trial]:
    """Return the trials of some cases of a skill in one arm."""
    chosen = replace(skill, cases=tuple(cases), before=None)
    everything = plan(chosen, models, runs=runs, min_pass_rate=1.0, max_tokens=max_tokens)
    return [replace(trial, first_run=first_run) for trial in everything if trial.arm == arm]


def teacher_trial(
    skill: Skill,
    teacher: Model,
    *,
    what: str,
    prompt: str,
    run: int = 0,
    runs: int = 1,
    max_tokens: int,
) -> Trial:
    """Return a question to the teacher, which is a trial without skill and without checks.

    Args:
        skill: The skill that it is about.
        teacher: The model.
        what: The name in the recording.
        prompt: The whole question.
        run: Index of the first run.
        runs: How many answers to ask for.
        max_tokens: Maximum output tokens.
    """
    return Trial(
        skill=skill,
        case=Case(id=what, input=prompt, checks=()),
        model=teacher,
        arm="without_skill",
        skill_block="",
        runs=runs,
        first_run=run,
        min_pass_rate=1.0,
        max_tokens=max_tokens,
    )


def counts_of(results: Iterable[TrialResult]) -> dict[str, Counts]:
    """Return the counts of each case by the label of the model."""
    found: dict[str, dict[str, tuple[int, int]]] = {}
    for result in results:
        found.setdefault(result.model, {})[result.case] = (result.passes, len(result.runs))
    return dict(found)


def compared(new: Mapping[str, Counts], old: Mapping[str, Counts]) -> dict[str, list[CaseCounts]]:
    """Return the counts of two versions by the label of the model; *with* is the new version."""
    return {
        model: [CaseCounts(*counts, *old[model][case]) for case, counts in of_model.items()]
        for model, of_model in new.items()
    }


def total(counts: Mapping[str, Counts]) -> tuple[int, int]:
    """Return passes and runs of all cases and models together."""
    pairs: Sequence[tuple[int, int]] = [pair for each in counts.values() for pair in each.values()]
    return sum(passes for passes, _ in pairs), sum(runs for _, runs in pairs)
