"""Which trials a skill's cases make, and what each of them sends."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import MISSING, Field, asdict, dataclass, fields
from typing import Literal

from pytest_upskill.checks import AnyCheck, Judge
from pytest_upskill.completion import Request
from pytest_upskill.model import Model
from pytest_upskill.skill import Case, Skill, SkillVersion

Arm = Literal["with_skill", "without_skill", "old_skill"]
ARMS: tuple[Arm, ...] = ("with_skill", "without_skill", "old_skill")
"""Side by side in this order; the last only where the skill is compared with what it was."""

FRAME = (
    "Answer the user's request directly and completely in one reply. "
    "Put code and file contents in fenced blocks that name their language."
)
"""The system text of every arm; only the skill block is added to it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One case on one model in one arm: one pytest item."""

    skill: Skill
    case: Case
    model: Model
    arm: Arm
    skill_block: str
    """What the arm adds to the system text; empty without a skill."""
    runs: int
    min_pass_rate: float
    max_tokens: int
    early_stop: bool = False
    """Whether runs are left out once the verdict is clear."""
    judge: Model | None = None
    """Who decides the statements among the case's checks; None for nobody."""

    @property
    def name(self) -> str:
        """``case-id[model-arm]``: stable however many runs there are."""
        return f"{self.case.id}[{self.model.label}-{self.arm}]"


def plan(
    skill: Skill,
    models: Iterable[Model],
    *,
    runs: int,
    min_pass_rate: float,
    max_tokens: int,
    early_stop: bool = False,
    judge: Model | None = None,
) -> Iterator[Trial]:
    """Make the trials of a skill: arms side by side, so that both meet the same weather.

    A case that is for none of the models has trials on all of them, to be skipped where they are
    seen; on some of them, it has trials on those alone.

    Args:
        skill: The skill and its cases.
        models: Every model chosen for this run.
        runs: Repeats of each trial.
        min_pass_rate: Share of the runs that must pass where the case file does not say.
        max_tokens: Limit of one answer.
        early_stop: Whether to leave out runs once the verdict is clear; not of a skill with a least
            lift, which needs them all.
        judge: Who decides statements about the answers.
    """
    models = tuple(models)
    blocks: dict[Arm, str] = {"with_skill": _skill_block(skill), "without_skill": ""}
    if skill.before is not None:
        blocks["old_skill"] = _skill_block(skill.before)
    for case in skill.cases:
        rate = min_pass_rate if case.min_pass_rate is None else case.min_pass_rate
        meant = [model for model in models if not case.foreign([model.label])]
        for model in meant or models:
            for arm, block in blocks.items():
                yield Trial(
                    skill=skill,
                    case=case,
                    model=model,
                    arm=arm,
                    skill_block=block,
                    runs=runs,
                    min_pass_rate=rate,
                    max_tokens=max_tokens,
                    early_stop=early_stop and skill.gate.min_lift is None,
                    judge=judge,
                )


def request(trial: Trial, run: int) -> Request:
    """Write what ``trial`` sends in its repeat ``run``."""
    return Request(
        model=trial.model,
        frame=FRAME,
        skill=trial.skill_block,
        user=_user_message(trial.case),
        max_tokens=trial.max_tokens,
        run=run,
    )


def arm_digests(request: Request) -> tuple[str, str]:
    """Digest what every arm got alike, and the skill block: the proof that arms are symmetric.

    Returns:
        Two hexadecimal digests: equal in all arms of a case, and the arm's own (empty without).
    """
    alike = [request.frame, request.user, request.max_tokens]
    return _digest(json.dumps(alike)), _digest(request.skill) if request.skill else ""


def grader_digest(trial: Trial) -> str:
    """Digest what decides about an answer; what checks leave at its default is left out."""
    said = []
    if trial.judge is not None and any(isinstance(check, Judge) for check in trial.case.checks):
        said.append({"judge": f"{trial.judge.provider}:{trial.judge.name}"})
    for check in trial.case.checks:
        named = fields(check)  # type: ignore[arg-type]  # every check is a dataclass
        values = {
            field.name: getattr(check, field.name) for field in named if _is_set(check, field)
        }
        said.append({"name": check.name} | values)
    return _digest(json.dumps(said, sort_keys=True, default=asdict))


def _is_set(check: AnyCheck, field: Field[object]) -> bool:
    """Return whether a value is not the field's default; ``0`` where the default is None is not."""
    made = field.default if field.default_factory is MISSING else field.default_factory()
    value = getattr(check, field.name)
    return type(value) is not type(made) or value != made


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _skill_block(skill: Skill | SkillVersion) -> str:
    return f'\n\n<skill name="{skill.name}">\n{skill.text.rstrip()}\n</skill>'


def _user_message(case: Case) -> str:
    files = (f'\n\n<file name="{name}">\n{text}\n</file>' for name, text in case.files.items())
    return case.input + "".join(files)
