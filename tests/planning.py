"""Trials of cases, planned without files."""

from __future__ import annotations

from pathlib import Path

from pytest_upskill.cases.skill import Case, Skill
from pytest_upskill.models import parse_model
from pytest_upskill.trials.trial import Trial, plan


def planned(
    *cases: Case, model: str = "offline", runs: int = 1, early_stop: bool = False
) -> list[Trial]:
    """Plan the trials of a skill with these cases on one model."""
    case_file = Path("skills/billing/skill_meta.json")
    skill = Skill(name="billing", text="Facts.", case_file=case_file, cases=cases)
    models = [parse_model(model)]
    trials = plan(skill, models, runs=runs, min_pass_rate=1, max_tokens=9, early_stop=early_stop)
    return list(trials)
