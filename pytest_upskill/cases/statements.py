"""Statements that no judge decides, because their author excluded them by a mark."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from itertools import count
from typing import Any, Literal, get_args

from pytest_upskill.cases.skill import Case
from pytest_upskill.checks.judge import Judge

Mark = Literal["agent", "vacuous"]
"""Why an author excludes a statement: it needs an agent, or every answer satisfies it."""

MARKS: tuple[Mark, ...] = get_args(Mark)

MARK_KEY = "statements"
"""Key of a case that maps the number of a statement, from 1, to its mark."""

_MARKED = f"{MARK_KEY}: every check is marked as agent or vacuous"


def with_marks(case: Case, marks: object) -> Case:
    """Return a case with numbers for its statements, without those that its author marked.

    Args:
        case: The case as it was read.
        marks: The value of `MARK_KEY` in the file; what is no object is left alone.

    Raises:
        ValueError: A mark is invalid; the message says how to write one.
    """
    numbers = count(1)
    checks = tuple(
        replace(check, number=next(numbers)) if isinstance(check, Judge) else check
        for check in case.checks
    )
    case = replace(case, checks=checks, statements=next(numbers) - 1)
    return marked(case, _read(marks)) if isinstance(marks, dict) else case


def marked(case: Case, marks: Mapping[int, Mark]) -> Case:
    """Return a case without the statements that its author marked.

    Args:
        case: The case, whose statements are numbered.
        marks: Maps the number of a statement to its mark.

    Raises:
        ValueError: There is no statement with such a number.
    """
    if not marks:
        return case
    for number in marks:
        if not 1 <= number <= case.statements:
            has = f"{case.statements} statement{'s' * (case.statements != 1)}"
            raise ValueError(f"there is no statement {number}: the case has {has} for a judge")
    case = without(case, marks)
    return replace(case, skip=case.skip or (None if case.checks else _MARKED))


def without(case: Case, numbers: Collection[int]) -> Case:
    """Return a case without the statements of some numbers."""
    kept = (
        check for check in case.checks if not (isinstance(check, Judge) and check.number in numbers)
    )
    return replace(case, checks=tuple(kept))


def _read(value: Mapping[str, Any]) -> Mapping[int, Mark]:
    marks: dict[int, Mark] = {}
    for number, mark in value.items():
        if mark not in MARKS or not str(number).isdecimal():
            raise ValueError(
                f"{number}: {mark!r} is not a mark: write a number and "
                f"{' or '.join(map(repr, MARKS))}"
            )
        marks[int(number)] = mark
    return marks
