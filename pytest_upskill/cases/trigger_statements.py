"""Statements for a judge that can mean nothing but the choice of the skill."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import replace

from pytest_upskill.cases.skill import Case, Trigger
from pytest_upskill.cases.statement_marks import without

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
