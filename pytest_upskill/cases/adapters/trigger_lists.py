"""Trigger lists: queries, each with whether an agent should choose a skill for it, or which one.

Read: skill-creator of anthropics/skills (``trigger-evals.json``), July 2026. The other spellings
were collected from files in public repositories; `choice.py` has the words for yes and no.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pytest_upskill.cases.adapters.adapter import NOTHING, Adapter, Draft, Entry, Reads, Shape, keys
from pytest_upskill.cases.adapters.choice import Choice, Unclear, normalize, polarity
from pytest_upskill.cases.adapters.fields import (
    Acceptable,
    Expected,
    Forbidden,
    Name,
    Prompt,
    Should,
    Skill,
    Tags,
)

PROMPTS = ("prompt", "input", "question", "query", "task", "instruction", "user_request", "text")

_SKILL = ("skill", "skill_name", "skill_under_test", "target_skill", "target_skills", "skills")

_SET = re.compile(
    r"(global_)?(should(?:_not)?_(?:trigger|activate|fire|load|use)|positive|negative"
    r"|near_(?:neighbou?r|miss)|(?:false|true|hard)_(?:positive|negative)|(?:in|out_of)_scope|anti)"
    r"(?:e?s|_(?:prompts|queries|cases|examples|triggers|tests))?"
)
"""Keys of lists of queries that share a choice; a global one is about all skills."""

_PART = re.compile(
    r"(?:(?:activat\w*|cases|evals?|evaluations?|negative|positive|prompts|quer(?:y|ies)|routing"
    r"|set|skill|tests?|triggers?|triggering)(?:[-_ ]|$))+",
    re.IGNORECASE,
)
"""Words of a key that names a part of the file, not a skill."""

LISTS = ("queries", "trigger_evals", "triggers", "trigger_tests", "trigger_cases", "routing_cases")


_ANY = re.compile(".+")


def kind(value: object, only: re.Pattern[str] = _ANY) -> Draft:
    """Read a word such as ``negative``; any other word is about something else."""
    if not isinstance(value, str) or not only.fullmatch(normalize(value)):
        return NOTHING
    try:
        meaning = polarity(value)
    except Unclear:
        return NOTHING
    return NOTHING if meaning is None else Draft(implied=Choice(should=frozenset({meaning})))


Kind = Annotated[Draft, Reads(kind, "the choice, where no other key says it")]


class Query(Shape):
    """A query, with the skill that should be chosen."""

    prompt: Prompt = keys(*PROMPTS)
    id: Name = NOTHING
    name: Name = NOTHING
    eval_name: Name = NOTHING
    slug: Name = NOTHING
    title: Name = NOTHING
    skill: Skill = keys(*_SKILL)
    should_trigger: Should = keys("should_trigger", "should_activate", "should_fire",
                                  "expected_trigger", "expect_activation", "expect_trigger",
                                  "should_use", "should_invoke", "should_load")  # fmt: skip
    expected_skill: Expected = keys("expected_skill", "expect_skill", "expected_skills",
                                    "expected_activation", "expected_triggers", "preferred_skill",
                                    "skills_expected_to_activate", "expected_primary_skill",
                                    "expected_selected_skill")  # fmt: skip
    acceptable_skills: Acceptable = keys("acceptable_skills", "acceptable_alternates")
    forbidden_skills: Forbidden = keys("forbidden_skills", "must_not_activate")
    expected: Should = NOTHING
    expect: Should = NOTHING
    kind: Kind = NOTHING
    type: Kind = NOTHING
    category: Kind = NOTHING
    label: Kind = NOTHING
    polarity: Kind = NOTHING
    tags: Tags = NOTHING


def sets_in(key: str, value: Any) -> list[Entry]:
    """Return the queries of the trigger set of a key, or of the sets in its object."""
    if _is_set(key, value):
        return _queries(key, value, ())
    if not isinstance(value, dict):
        return []
    skill = {} if _PART.fullmatch(key) else {"skill": key}
    return [
        Entry(at, _with(case, skill))
        for inner, part in value.items()
        if _is_set(inner, part)
        for at, case in _queries(inner, part, (key,))
    ]


def _is_set(key: str, value: object) -> bool:
    return isinstance(value, list) and _SET.fullmatch(normalize(key)) is not None


def _queries(key: str, queries: Sequence[Any], path: tuple[str, ...]) -> list[Entry]:
    found = _SET.fullmatch(normalize(key))
    assert found is not None
    shared: dict[str, Any] = {"should_trigger": polarity(found[2])}
    if found[1]:
        shared["expected_skill"] = None
    return [
        Entry(
            (*path, key, index),
            {"query": query, **shared} if isinstance(query, str) else _with(query, shared),
        )
        for index, query in enumerate(queries)
    ]


def _with(query: Any, shared: Mapping[str, Any]) -> Any:
    """Add what the queries of a set share; such a query may repeat the choice in other words."""
    if not isinstance(query, dict):
        return query
    own = {key: value for key, value in query.items() if key not in {"expected", "expect"}}
    return {**own, **shared} if "should_trigger" in shared else {**shared, **own}


def find(value: Any) -> list[Entry]:
    """Return the queries of a list, of a list below a key, or of trigger sets."""
    if isinstance(value, list):
        return [entry for index, case in enumerate(value) for entry in _of_item(index, case)]
    if not isinstance(value, dict):
        return []
    entries = []
    for key, part in value.items():
        if key in LISTS and isinstance(part, list):
            entries += [Entry((key, index), case) for index, case in enumerate(part)]
        entries += sets_in(key, part)
    return entries


def _of_item(index: int, case: Any) -> list[Entry]:
    """Return an item of a list: a query, or a skill with the queries that should trigger it."""
    queries = case.get("queries") if isinstance(case, dict) else None
    if not isinstance(queries, list) or "skill" not in case:
        return [Entry((index,), case)]
    shared = {"skill": case["skill"], "should_trigger": True}
    return [
        Entry((index, "queries", at), {"query": text, **shared}) for at, text in enumerate(queries)
    ]


def skill_at_top(value: Any) -> str:
    """Return the name of the skill that keys at the top of a file name, "" if there is none."""
    if not isinstance(value, dict):
        return ""
    draft = _Top.model_validate(value).draft()
    return draft.skills[0] if len(draft.skills) == 1 else ""


class _Top(Shape):
    skill: Skill = keys(*_SKILL)


ADAPTER = Adapter(
    tool="trigger lists",
    about="skill-creator of https://github.com/anthropics/skills, July 2026",
    places=(
        "trigger{-,_}{eval,evals,queries}.{json,jsonl,yaml,yml}",
        "*{trigger,routing,activation}*.{json,jsonl,yaml,yml}",
    ),
    find=find,
    shape=Query,
    every=True,
    skill=skill_at_top,
    example="""\
[
  {"query": "Merge these two tables", "should_trigger": true},
  {"query": "What is the weather?", "should_trigger": false}
]
""",
)
