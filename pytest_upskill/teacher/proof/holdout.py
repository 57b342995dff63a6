"""Which cases compare versions of a skill, and which of them are never used to choose one."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator

from pytest_upskill.formats.skill import Case
from pytest_upskill.grading.grade import sandboxed_of
from pytest_upskill.teacher.work.engine import Engine

SHARE = 0.4
"""Share of the cases that are held out."""

MIN_HELD_OUT = 8
"""Cases that a hold-out needs to decide: with 10 runs of each, +20 points show in 95 % of looks."""


def eligible_cases(engine: Engine, cases: Iterable[Case]) -> tuple[list[Case], dict[str, str]]:
    """Return the cases that all students can be measured on by code, and why the others are not."""
    kept, left_out = list[Case](), dict[str, str]()
    for case in cases:
        if reason := next(_ineligible_reasons(engine, case), ""):
            left_out[case.id] = reason
        else:
            kept.append(case)
    return kept, left_out


def _ineligible_reasons(engine: Engine, case: Case) -> Iterator[str]:
    if case.skip:
        yield case.skip
    if case.agent_key:
        yield f"'{case.agent_key}' needs an agent"
    if not case.is_answered:
        yield "is about triggers, and has no answer"
    if len(case.judge_checks) == len(case.checks):
        yield "has no check by code"
    students = engine.terms.students
    yield from filter(None, (case.why_not_for([student.label]) for student in students))
    if sandboxed := sandboxed_of(case):
        compilers = engine.workplace.resources.compilers()
        yield from filter(None, map(compilers.missing, sandboxed))


def is_held_out(case_id: str) -> bool:
    """Return whether a case is held out, which depends on its id alone and never changes."""
    number = int.from_bytes(hashlib.sha256(case_id.encode()).digest()[:8], "big")
    return number / 2**64 < SHARE


def split_cases(cases: Iterable[Case]) -> tuple[list[Case], list[Case]]:
    """Return the train cases and the held-out cases."""
    cases = list(cases)
    return (
        [case for case in cases if not is_held_out(case.id)],
        [case for case in cases if is_held_out(case.id)],
    )


def missing_cases(held_out: int) -> int:
    """Estimate how many more cases would fill the hold-out, as each has a chance of ``SHARE``."""
    lacking = max(0, MIN_HELD_OUT - held_out)
    return -int(-lacking // SHARE)


def question_digest(case: Case) -> str:
    """Return the digest of a case's id and question; checks may be fixed without a new digest."""
    return digest([case.id, case.input, dict(case.files)])


def digest(value: object) -> str:
    """Return the digest of a JSON value, as the ledger writes it."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]
