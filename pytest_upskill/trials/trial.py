"""Trials of a skill's cases, and the request of each."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import MISSING, Field, asdict, dataclass, fields, replace
from typing import Any, Literal

from pytest_upskill.checks import AnyCheck, Judge
from pytest_upskill.checks.files import WorkspaceFile
from pytest_upskill.checks.judge import PROMPT_DIGEST
from pytest_upskill.completion import MAX_TURNS, AgentTask, Request
from pytest_upskill.formats.catalogue import Catalogue, ListedSkill
from pytest_upskill.formats.catalogue_file import Catalogues, listed
from pytest_upskill.formats.skill import Case, Skill, SkillVersion
from pytest_upskill.model import Model
from pytest_upskill.trials.conversation import first_request

Arm = Literal["with_skill", "without_skill", "old_skill", "trigger", "old_trigger"]
ARMS: tuple[Arm, ...] = ("with_skill", "without_skill", "old_skill", "trigger", "old_trigger")
"""Arms in the order of their trials; the old ones exist only with a git ref to compare with."""

TRIGGER_ARMS = frozenset[Arm]({"trigger", "old_trigger"})
"""Arms in which a model chooses among skills; they have no part in a lift."""

FRAME = (
    "Answer the user's request directly and completely in one reply. "
    "Put code and file contents in fenced blocks that name their language."
)
"""System prompt of every arm, to which only the skill block is added."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One case on one model in one arm: one pytest item."""

    skill: Skill
    case: Case
    model: Model
    arm: Arm
    skill_block: str
    """Text that the arm adds to the system prompt; empty without a skill."""
    runs: int
    first_run: int = 0
    """Index of the first run; another one asks for answers that no other trial has."""
    min_pass_rate: float
    max_tokens: int
    early_stop: bool = False
    """Whether remaining runs are skipped once the verdict is clear."""
    judge: Model | None = None
    """Model that decides the case's statements; None if there is none."""
    catalogue: Catalogue | None = None
    """What the model chooses from; None unless it chooses."""
    listed: ListedSkill | None = None
    """The skill as the catalogue lists it; None unless the model chooses."""

    @property
    def chooses(self) -> bool:
        """Whether the model chooses among skills."""
        return self.arm in TRIGGER_ARMS

    @property
    def name(self) -> str:
        """``case-id[model-arm]``, independent of the number of runs."""
        return f"{self.case.id}[{self.model.label}-{self.arm}]"


def runs_of(model: Model, runs: int) -> int:
    """Return the number of runs of a trial, 1 if further runs would repeat the first."""
    return 1 if model.parameters.one_run_is_enough else runs


def plan(
    skill: Skill,
    models: Iterable[Model],
    *,
    runs: int,
    min_pass_rate: float,
    max_tokens: int,
    early_stop: bool = False,
    judge: Model | None = None,
    catalogues: Catalogues | None = None,
) -> Iterator[Trial]:
    """Make the trials of a skill.

    The arms of a case are next to each other, so that they run under the same conditions. A case
    that is restricted to some of the models has trials on those only. A case that is restricted to
    other models has trials on all, which are skipped and so visible.

    Args:
        skill: The skill and its cases.
        models: Every model chosen for this run.
        runs: Number of runs of each trial.
        min_pass_rate: Fraction of the runs that must pass if the case file sets none.
        max_tokens: Maximum output tokens of one answer.
        early_stop: Whether to skip remaining runs once the verdict is clear; ignored for a skill
            with a minimum lift, which needs all runs.
        judge: Model that decides statements about answers.
        catalogues: What an agent would see; None for no trials in which a model chooses.
    """
    models = tuple(models)
    blocks: dict[Arm, str] = {"with_skill": _skill_block(skill), "without_skill": ""}
    if skill.before is not None:
        blocks["old_skill"] = _skill_block(skill.before)
    shown = {} if catalogues is None else _shown(skill, catalogues)
    for case in skill.cases:
        rate = min_pass_rate if case.min_pass_rate is None else case.min_pass_rate
        meant = [model for model in models if not case.foreign([model.label])]
        for model in meant or models:
            for arm, block in blocks.items() if case.is_answered else ():
                yield Trial(
                    skill=skill,
                    case=case,
                    model=model,
                    arm=arm,
                    skill_block=block,
                    runs=runs_of(model, runs),
                    min_pass_rate=rate,
                    max_tokens=model.parameters.max_tokens or max_tokens,
                    early_stop=early_stop and skill.gate.min_lift is None,
                    judge=judge,
                )
            for arm, (catalogue, own) in shown.items() if case.trigger else ():
                yield Trial(
                    skill=skill,
                    case=_query(case),
                    model=model,
                    arm=arm,
                    skill_block="",
                    runs=runs,
                    min_pass_rate=rate,
                    max_tokens=model.parameters.max_tokens or max_tokens,
                    catalogue=catalogue,
                    listed=own,
                )


def request(trial: Trial, run: int) -> Request:
    """Return the first request of a trial in one run; ``run`` counts from 0."""
    if trial.catalogue is not None:
        return first_request(
            model=trial.model,
            catalogue=trial.catalogue,
            query=user_message(trial.case),
            max_tokens=trial.max_tokens,
            run=run,
        )
    agent = bool(trial.model.agent)
    return Request(
        model=trial.model,
        frame="" if agent else FRAME,
        skill="" if agent else trial.skill_block,
        task=_task(trial) if agent else None,
        user=user_message(trial.case),
        max_tokens=trial.max_tokens,
        run=trial.first_run + run,
    )


def _query(case: Case) -> Case:
    """Return a case without what is about an answer: there is none where a model chooses."""
    return replace(
        case,
        checks=(),
        statement_numbers=(),
        process=(),
        workspace=(),
        max_turns=None,
        agent_key="",
        skip=None,
    )


def is_described_anew(skill: Skill) -> bool:
    """Return whether a catalogue lists a skill otherwise than at the git ref."""
    return skill.before is not None and listed(skill.before) != listed(skill)


def arm_digests(request: Request) -> tuple[str, str]:
    """Return digests of a request's parts, which prove that arms differ only in the skill.

    Returns:
        Hexadecimal digests of the part that is equal in all arms of a case, and of the skill block
        (empty without a skill).
    """
    alike: list[object] = [request.frame, request.user, request.max_tokens]
    if request.model.parameters:
        alike.append(request.model.parameters.entries)
    skill = request.skill
    if task := request.task:
        alike += [[asdict(file) for file in task.workspace], task.max_turns]
        skill = _installed(task.skill_name, task.skill) if task.skill else ""
    return _digest(json.dumps(alike)), _digest(skill) if skill else ""


def grader_digest(trial: Trial) -> str:
    """Return the digest of a trial's checks and judge; fields with default values do not count."""
    said = []
    if trial.judge is not None and any(isinstance(check, Judge) for check in trial.case.checks):
        judge = judge_name(trial.judge)
        reference = {"reference": trial.case.reference} if trial.case.reference else {}
        said.append({"judge": judge, "prompt": PROMPT_DIGEST, **reference})
    return _digest(_as_json([*said, *_checks(trial.case)]))


def case_digest(case: Case) -> str:
    """Return the digest of what is asked in a case and what must hold, whoever is the judge."""
    asked = [user_message(case), case.reference, case.workspace, case.max_turns]
    return _digest(_as_json([asked, *_checks(case)]))


def skill_digest(skill: Skill) -> str:
    """Return the digest of the skill block that a model gets."""
    return _digest(_skill_block(skill))


def installed_digest(skill: Skill) -> str:
    """Return the digest of a skill as it is installed for an agent."""
    return _digest(_installed(skill.name, skill.files))


def judge_name(model: Model) -> str:
    """Return the name by which a judge is known, with its parameters, whichever host serves it."""
    return " ".join((f"{model.provider}:{model.name}", *model.parameters.entries))


def _installed(name: str, files: Iterable[WorkspaceFile]) -> str:
    return json.dumps([name, *map(asdict, files)])


def _checks(case: Case) -> Iterator[dict[str, Any]]:
    for check in case.checks:
        named = fields(check)  # type: ignore[arg-type]  # every check is a dataclass
        values = {
            field.name: getattr(check, field.name) for field in named if _is_set(check, field)
        }
        yield {"name": check.name} | values


def _as_json(said: list[Any]) -> str:
    return json.dumps(said, sort_keys=True, default=_described)


def _described(value: Any) -> dict[str, Any]:
    """Return the fields of a value, and its name, which may be an attribute of its class."""
    described: dict[str, Any] = {"name": value.name} | asdict(value)
    if "check" in described:
        described["check"] = _described(value.check)
    return described


def trigger_digest(trial: Trial) -> str:
    """Return the digest of what a query should trigger, whatever the skill's name is now."""
    trigger = trial.case.trigger
    return "" if trigger is None else _digest(json.dumps(asdict(trigger), sort_keys=True))


def _shown(skill: Skill, catalogues: Catalogues) -> dict[Arm, tuple[Catalogue, ListedSkill]]:
    """Return the catalogue of each trigger arm, and the skill as it is listed there."""
    shown: dict[Arm, tuple[Catalogue, ListedSkill]] = {
        "trigger": (catalogues.of(skill), listed(skill))
    }
    if is_described_anew(skill):
        assert skill.before is not None
        shown["old_trigger"] = catalogues.before(skill), listed(skill.before)
    return shown


def _is_set(check: AnyCheck, field: Field[object]) -> bool:
    """Return whether a field differs from its default in value or type."""
    made = field.default if field.default_factory is MISSING else field.default_factory()
    value = getattr(check, field.name)
    return type(value) is not type(made) or value != made


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _task(trial: Trial) -> AgentTask:
    """Return what an agent gets in the trial's arm."""
    version: Skill | SkillVersion | None = None
    if trial.arm == "with_skill":
        version = trial.skill
    elif trial.arm == "old_skill":
        version = trial.skill.before
    return AgentTask(
        workspace=trial.case.workspace,
        skill_name=version.name if version else "",
        skill=version.files if version else (),
        max_turns=trial.case.max_turns or MAX_TURNS,
    )


def _skill_block(skill: Skill | SkillVersion) -> str:
    return f'\n\n<skill name="{skill.name}">\n{skill.text.rstrip()}\n</skill>'


def user_message(case: Case) -> str:
    """Return the message of a case in every arm: its input and its files."""
    files = (f'\n\n<file name="{name}">\n{text}\n</file>' for name, text in case.files.items())
    return case.input + "".join(files)
