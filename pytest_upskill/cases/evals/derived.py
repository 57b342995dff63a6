"""Checks by code for the cases of an existing evals file, made without a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_upskill.cases.evals.proposals import Proposal, propose
from pytest_upskill.cases.skill import Case, Skill
from pytest_upskill.checks import AnyCheck, Check, JsonSchema


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
        written["context"] = {"files": dict(case.files)}
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
