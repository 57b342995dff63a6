"""Statements that no judge decides: those excluded by a mark, or about which skill is chosen."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import replace
from itertools import count
from typing import Any, Literal, get_args

from pytest_upskill.cases.skill import Case, Trigger
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


_NAMED = r"(?:(?:the|this) )?(?:(?P<{0}>[\w-]+) )?skill"
_CHOICE = (
    r"(?:triggers?|triggered|activates?|activated|fires?|"
    r"(?:is |gets )?(?:invoked|loaded|used|selected|chosen))"
)
_TAIL = (
    r"(?: (?:here|automatically|correctly|at all|"
    r"(?:for|on|by|in) (?:this|the) (?:prompt|query|question|request|message|input|case)))?\.?"
)
_TRIGGERS = tuple(
    re.compile(pattern + _TAIL, re.IGNORECASE)
    for pattern in (
        _NAMED.format("name")
        + r" (?:(?:should|must|shall|will|does|is|was|did) )?(?P<no>(?:not|never) )?(?:be )?"
        + _CHOICE,
        r"(?:(?:should|must|do|does) )?(?P<no>not )?(?:trigger|activate|invoke|load|use)s? "
        + _NAMED.format("name"),
    )
)
"""Statements that are only about whether a skill is chosen."""


def with_trigger(case: Case, skills: Collection[str]) -> Case:
    """Return a case without the statements that are only about which skill is chosen.

    No answer can show that, so they become the case's trigger, unless its keys say already which
    skill an agent should take.

    Args:
        case: Any case.
        skills: All names of the skill that the case belongs to.
    """
    chosen = {
        check.number: is_expected
        for check in case.judge_checks
        if (is_expected := _expects_choice(check.statement, skills)) is not None
    }
    if not chosen:
        return case
    trigger = case.trigger or (Trigger(should=all(chosen.values())) if case.input else None)
    return replace(without(case, chosen), trigger=trigger)


def _expects_choice(statement: str, skills: Collection[str]) -> bool | None:
    """Return whether this skill is expected to be chosen, None if the statement is not about it."""
    found = next(filter(None, (each.fullmatch(statement.strip()) for each in _TRIGGERS)), None)
    if found is None:
        return None
    other = found["name"] is not None and found["name"] not in skills
    return bool(found["no"]) == other
