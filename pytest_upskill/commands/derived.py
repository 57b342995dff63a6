"""Checks by code for the cases of an evals file, made without a model.

A statement for a judge suggests a check if it names a literal. The rules read English, so they miss
some literals and misread a few statements: what they return is for an author to review, never to be
used unseen.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pytest_upskill.cases.skill import Case, Skill
from pytest_upskill.checks import AnyCheck
from pytest_upskill.checks.result import Check
from pytest_upskill.checks.structure import JsonSchema

Key = Literal["contains", "contains_any", "not_contains"]

_LITERAL = re.compile(r"`([^`\n]+)`|\"([^\"\n]+)\"|\u201c([^\u201d\n]+)\u201d")
_SHORTEST, _LONGEST = 2, 80
_PLACEHOLDER = re.compile(r"<[\w -]+>|\.\.\.|\u2026|\{\w+\}|\[\w+\]")
_OPEN = re.compile(
    r"\b(?:if|when|unless|depending|optional(?:ly)?|may|might|could|ideally|preferably|such as|"
    r"e\.g\.|for (?:example|instance)|like|similar|equivalent|or (?:similar|equivalent))(?!\w)",
    re.IGNORECASE,
)
"""Words of statements that leave open what the answer says."""
_NOT = re.compile(
    r"\b(?:not|never|no|without|avoids?|avoiding|omits?|excludes?|refrains?|nor|cannot|free of)\b"
    r"|n't\b",
    re.IGNORECASE,
)
_INSTEAD = re.compile(
    r"\b(?:instead of|rather than|in place of|as opposed to|over)\b", re.IGNORECASE
)
_EITHER = re.compile(r"\b(?:or|either|one of|any of|at least one)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A check that a statement suggests."""

    key: Key
    texts: tuple[str, ...]
    statement: str


def propose(statement: str, question: str) -> Proposal | None:
    """Return the check that a statement suggests, None if it suggests none clearly.

    Args:
        statement: A sentence about an answer, such as ``Mentions `--legacy-json```.
        question: The case's question; a literal in it is no sign of a correct answer.
    """
    if _OPEN.search(_LITERAL.sub("", statement)):
        return None
    instead = _INSTEAD.search(statement)
    wanted = statement[: instead.start()] if instead else statement
    texts = _literals(wanted)
    if not texts:
        return None
    around = _LITERAL.sub("", wanted)
    if negated := _NOT.search(wanted):
        first = _LITERAL.search(wanted)
        # A sentence that both wants and forbids says which only to a reader.
        if instead or first is None or first.start() < negated.start() or " but " in around:
            return None
        return Proposal(key="not_contains", texts=texts, statement=statement)
    texts = tuple(text for text in texts if text.casefold() not in question.casefold())
    if not texts:
        return None
    key: Key = "contains_any" if len(texts) > 1 and _EITHER.search(around) else "contains"
    return Proposal(key=key, texts=texts, statement=statement)


def _literals(text: str) -> tuple[str, ...]:
    found = ("".join(filter(None, match.groups())).strip() for match in _LITERAL.finditer(text))
    return tuple(dict.fromkeys(literal for literal in found if _is_literal(literal)))


def _is_literal(text: str) -> bool:
    return (
        _SHORTEST <= len(text) <= _LONGEST
        and any(map(str.isalnum, text))
        and not _PLACEHOLDER.search(text)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Derived:
    """What an existing evals file gives."""

    cases: list[Mapping[str, Any]]
    """Cases with checks by code, as they are written into ``skill_meta.json``."""
    proposals: list[tuple[str, Proposal]]
    """Proposed checks, each with the id of its case."""
    judged: list[tuple[str, str]]
    """Statements that need a judge, each with the id of its case."""
    agent: list[tuple[str, str]]
    """Cases that need an agent, or another feature that a single answer lacks."""
    triggers: list[tuple[str, str]]
    """Cases that test whether the skill is chosen, each with its query."""


def derive(skill: Skill) -> Derived:
    """Return the cases and proposals that the cases of an evals file give.

    Args:
        skill: The skill with the cases of the file.
    """
    cases: list[Mapping[str, Any]] = []
    proposals: list[tuple[str, Proposal]] = []
    judged: list[tuple[str, str]] = []
    agent: list[tuple[str, str]] = []
    for case in skill.cases:
        if not case.is_answered:
            continue
        if case.skip is not None:
            agent.append((case.id, case.skip))
            continue
        own: list[Proposal] = []
        for check in case.judge_checks:
            statement = check.statement
            if proposal := propose(statement, case.input):
                own.append(proposal)
            else:
                judged.append((case.id, statement))
        if own or any(_entries_of(check) for check in case.checks):
            cases.append(_derived_case(case, own))
        proposals += ((case.id, proposal) for proposal in own)
    return Derived(
        cases=cases,
        proposals=proposals,
        judged=judged,
        agent=agent,
        triggers=[(case.id, case.input) for case in skill.cases if case.trigger is not None],
    )


def _derived_case(case: Case, proposals: Sequence[Proposal]) -> Mapping[str, Any]:
    expected: dict[str, Any] = {}
    for check in case.checks:
        for key, value in _entries_of(check):
            _add(expected, key, value)
    for proposal in proposals:
        if proposal.key == "contains_any" and "contains_any" in expected:
            continue  # a case has one such list
        for text in proposal.texts:
            _add(expected, proposal.key, text)
    written: dict[str, Any] = {}
    if proposals:
        written["$comment"] = ["proposed for:", *(each.statement for each in proposals)]
    written |= {"id": case.id, "input": case.input}
    if case.files:
        written["context"] = {"files": {file.name: file.prompt for file in case.files}}
    if case.tags:
        written["tags"] = list(case.tags)
    return written | {"expected": expected}


def _add(expected: dict[str, Any], key: str, value: Any) -> None:
    if key == "json_schema":
        expected[key] = value
    elif value not in expected.setdefault(key, []):
        expected[key].append(value)


def _entries_of(check: AnyCheck) -> list[tuple[str, Any]]:
    """Return the entries of ``expected`` that a check by code is written as."""
    match check:
        case JsonSchema():
            return [(check.name, check.schema)]
        case Check():
            return [(check.name, wanted) for wanted in check.wanted]
        case _:
            return []
