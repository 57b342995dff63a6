"""Statements for a judge that the author of a case excludes by a mark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import count
from typing import Literal, get_args

from pytest_upskill.checks import Judge
from pytest_upskill.formats.skill import Case

Mark = Literal["agent", "vacuous"]
"""Why an author excludes a statement: it needs an agent, or every answer satisfies it."""

MARKS: tuple[Mark, ...] = get_args(Mark)

MARK_KEY = "statements"
"""Key of a case that maps the number of a statement, from 1, to its mark."""

_MARKED = f"{MARK_KEY}: every check is marked as agent or vacuous"


def numbered(case: Case) -> Case:
    """Return a case as it was read, with the numbers of its statements."""
    numbers = count(1)
    checks = tuple(
        replace(check, number=next(numbers)) if isinstance(check, Judge) else check
        for check in case.checks
    )
    return replace(case, checks=checks, statements=next(numbers) - 1)


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
    kept = tuple(
        check for check in case.checks if not (isinstance(check, Judge) and check.number in marks)
    )
    return replace(case, checks=kept, skip=case.skip or (None if kept else _MARKED))


def read_marks(value: object) -> Mapping[int, Mark]:
    """Read the marks of a case, ``{"2": "agent"}``.

    Raises:
        ValueError: A mark is invalid; the message says how to write one.
    """
    if not isinstance(value, dict):
        raise ValueError('must map the numbers of statements to marks, such as {"2": "agent"}')  # noqa: TRY004  a mistake in a file
    marks: dict[int, Mark] = {}
    for number, mark in value.items():
        if mark not in MARKS or not str(number).isdecimal():
            raise ValueError(
                f"{number}: {mark!r} is not a mark: write a number and "
                f"{' or '.join(map(repr, MARKS))}"
            )
        marks[int(number)] = mark
    return marks
