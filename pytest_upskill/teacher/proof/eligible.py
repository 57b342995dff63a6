"""Which cases of a skill can be used to compare versions of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from pytest_upskill.checks import Judge
from pytest_upskill.formats.skill import Case
from pytest_upskill.grading.grade import sandboxed_of
from pytest_upskill.model import Model
from pytest_upskill.teacher.work.engine import Engine


def eligible(
    engine: Engine, cases: Iterable[Case], students: Sequence[Model]
) -> tuple[list[Case], dict[str, str]]:
    """Return the cases that all students can be measured on by code, and why the others are not."""
    kept, left_out = list[Case](), dict[str, str]()
    for case in cases:
        if reason := next(_reasons(engine, case, students), ""):
            left_out[case.id] = reason
        else:
            kept.append(case)
    return kept, left_out


def _reasons(engine: Engine, case: Case, students: Sequence[Model]) -> Iterator[str]:
    if case.skip:
        yield case.skip
    if case.needs_agent:
        yield f"'{case.needs_agent}' needs an agent"
    if not case.is_answered:
        yield "is about triggers, and has no answer"
    if all(isinstance(check, Judge) for check in case.checks):
        yield "has no check by code"
    yield from filter(None, (case.foreign([student.label]) for student in students))
    if sandboxed := sandboxed_of(case):
        compilers = engine.workplace.resources.compilers()
        yield from filter(None, map(compilers.missing, sandboxed))
