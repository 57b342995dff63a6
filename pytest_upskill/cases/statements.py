"""Statements that no judge decides, because their author excluded them by a mark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import count
from typing import Any, Literal, get_args

from pytest_upskill.cases.skill import Case
from pytest_upskill.checks.judge import Judge
from pytest_upskill.project.messages import counted

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
    checks = [
        replace(check, number=next(numbers)) if isinstance(check, Judge) else check
        for check in case.checks
    ]
    total = next(numbers) - 1
    marked = _marked(marks, total) if isinstance(marks, dict) else set()
    kept = tuple(
        check for check in checks if not (isinstance(check, Judge) and check.number in marked)
    )
    skip = case.skip or (_MARKED if marked and not kept else None)
    return replace(case, checks=kept, statements=total, skip=skip)


def _marked(marks: Mapping[str, Any], total: int) -> set[int]:
    """Return the numbers of the marked statements, of which there are so many."""
    for number, mark in marks.items():
        if mark not in MARKS or not str(number).isdecimal():
            values = " or ".join(map(repr, MARKS))
            raise ValueError(f"{number}: {mark!r} is not a mark: write a number and {values}")
        if not 1 <= int(number) <= total:
            has = counted(total, "statement")
            raise ValueError(f"there is no statement {number}: the case has {has} for a judge")
    return set(map(int, marks))
