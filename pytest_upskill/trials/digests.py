"""Digests that results and baselines keep: of requests, skills and checks."""

import json
from collections.abc import Iterator
from dataclasses import MISSING, Field, asdict, fields
from typing import Any

from pytest_upskill.cases.skill import Case
from pytest_upskill.checks import AnyCheck
from pytest_upskill.checks.judge import PROMPT_DIGEST
from pytest_upskill.models import Model
from pytest_upskill.project.digest import digest_of
from pytest_upskill.trials.trial import Trial, request_of


def arm_digests(trial: Trial) -> tuple[str, str]:
    """Return digests of what a trial asks, which prove that arms differ only in the skill.

    Returns:
        Hexadecimal digests of the part that is equal in all arms of a case, and of the skill block
        (empty without a skill). Where a model chooses among skills, the latter is that of the name
        and the description of the skill under test.
    """
    first_request = request_of(trial, run=0)
    equal_parts: list[object] = [first_request.frame, first_request.user, first_request.max_tokens]
    if first_request.model.parameters:
        equal_parts.append(first_request.model.parameters.entries)
    skill = first_request.skill
    if task := first_request.task:
        files = [asdict(file) for file in task.workspace]
        equal_parts += [files, asdict(task.setup), task.max_turns]
        skill = json.dumps([task.skill_name, *map(asdict, task.skill)]) if task.skill else ""
    prompt = digest_of(json.dumps(equal_parts))
    if trial.chooses:
        return prompt, trial.listed.digest
    return prompt, digest_of(skill) if skill else ""


def grader_digest(trial: Trial) -> str:
    """Return the digest of a trial's checks and judge; fields with default values do not count."""
    judge_fields = []
    if trial.judge is not None and trial.case.judge_checks:
        judge = judge_name(trial.judge)
        reference = {"reference": trial.case.reference} if trial.case.reference else {}
        judge_fields.append({"judge": judge, "prompt": PROMPT_DIGEST, **reference})
    return digest_of(_as_json([*judge_fields, *_checks(trial.case)]))


def case_digest(case: Case) -> str:
    """Return the digest of what is asked in a case and what must hold, whoever is the judge."""
    question = [
        *(case.input, case.files, case.reference),
        *(case.workspace, asdict(case.setup), case.max_turns),
    ]
    return digest_of(_as_json([question, *_checks(case)]))


def judge_name(model: Model) -> str:
    """Return the name by which a judge is known, with its parameters, whichever host serves it."""
    return " ".join((f"{model.provider}:{model.name}", *model.parameters.entries))


def _checks(case: Case) -> Iterator[dict[str, Any]]:
    for check in case.checks:
        named = fields(check)  # type: ignore[arg-type]  # every check is a dataclass
        values = {
            field.name: getattr(check, field.name)
            for field in named
            if field.compare and _is_set(check, field)
        }
        yield {"name": check.name} | values


def _as_json(values: list[Any]) -> str:
    return json.dumps(values, sort_keys=True, default=_describe)


def _describe(value: Any) -> dict[str, Any]:
    """Return the fields of a value, and its name if it has one, maybe as its class's attribute."""
    described: dict[str, Any] = {"name": getattr(value, "name", "")} | asdict(value)
    if "check" in described:
        described["check"] = _describe(value.check)
    return described


def trigger_digest(trial: Trial) -> str:
    """Return the digest of what a query should trigger, whatever the skill's name is now."""
    trigger = trial.case.trigger
    return "" if trigger is None else digest_of(json.dumps(asdict(trigger), sort_keys=True))


def _is_set(check: AnyCheck, field: Field[object]) -> bool:
    """Return whether a field differs from its default in value or type."""
    default = field.default if field.default_factory is MISSING else field.default_factory()
    value = getattr(check, field.name)
    return type(value) is not type(default) or value != default
