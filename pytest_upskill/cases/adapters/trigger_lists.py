"""Trigger lists: queries, each with whether an agent should choose a skill for it, or which one.

Read: skill-creator of anthropics/skills (``trigger-evals.json``), July 2026. The other spellings
were collected from files in public repositories; `choice.py` has the words for yes and no.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from pytest_upskill.cases.adapters import keys
from pytest_upskill.cases.adapters.adapter import Adapter, Entry, Reader, Shape, listed
from pytest_upskill.cases.adapters.choice import Choice, Unclear, normalize, polarity
from pytest_upskill.cases.adapters.draft import NOTHING, Draft, Flaw, Weight

PROMPTS = ["prompt", "input", "question", "query", "task", "instruction", "user_request", "text"]

_SKILL = "skill|skill_name|skill_under_test|target_skill|target_skills|skills"

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


def kind(meaning: str, *, only: str = ".+") -> Reader:
    """Return how a word such as ``negative`` is read; any other word is about something else."""

    def read(value: object) -> Draft:
        if not isinstance(value, str) or not re.fullmatch(only, normalize(value)):
            return NOTHING
        try:
            found = polarity(value)
        except Unclear:
            return NOTHING
        return NOTHING if found is None else Draft(implied=Choice(should=frozenset({found})))

    return Reader(meaning, read)


def _said(value: object) -> Draft:
    """Read what is expected; what is more than a choice makes it another kind of file."""
    found = keys.SHOULD.read(value)
    if found.notes:
        raise Flaw(found.notes[0].what, Weight.SKIPPED)
    return found


QUERY: Mapping[str, Reader] = {
    "|".join(PROMPTS): keys.PROMPT,
    "id name eval_name slug title": keys.NAME,
    _SKILL: keys.SKILL,
    "should_trigger|should_activate|should_fire|expected_trigger|expect_activation|expect_trigger"
    "|should_use|should_invoke|should_load": keys.SHOULD,
    "expected_skill|expect_skill|expected_skills|expected_activation|expected_triggers"
    "|preferred_skill|skills_expected_to_activate|expected_primary_skill"
    "|expected_selected_skill": keys.EXPECTED_SKILL,
    "acceptable_skills|acceptable_alternates": keys.ACCEPTABLE,
    "forbidden_skills|must_not_activate": keys.FORBIDDEN,
    "tags": keys.TAGS,
}
"""The keys of a query, with the skill that should be chosen."""

_KIND = kind("the choice, where no other key says it")
_SHAPE = Shape(
    {
        **QUERY,
        "expected expect": Reader(keys.SHOULD.meaning, _said),
        "kind type category label polarity": _KIND,
    }
)


def sets_in(key: str, value: Any) -> list[Entry]:
    """Return the queries of the trigger set of a key, or of the sets in its object."""
    if isinstance(value, dict):
        skill = {} if _PART.fullmatch(key) else {"skill": key}
        return [
            Entry((key, *at), {**skill, **case} if isinstance(case, dict) else case)
            for inner, part in value.items()
            if isinstance(part, list)
            for at, case in sets_in(inner, part)
        ]
    found = _SET.fullmatch(normalize(key))
    if not found or not isinstance(value, list):
        return []
    shared: dict[str, Any] = {"should_trigger": polarity(found[2])}
    if found[1]:
        shared["expected_skill"] = None
    return [Entry((key, index), _with(query, shared)) for index, query in enumerate(value)]


def _with(query: Any, shared: Mapping[str, Any]) -> Any:
    """Add what the queries of a set share; such a query may repeat the choice in other words."""
    if isinstance(query, str):
        return {"query": query, **shared}
    if not isinstance(query, dict):
        return query
    return {key: query[key] for key in query if key not in {"expected", "expect"}} | dict(shared)


def find(value: Any) -> list[Entry]:
    """Return the queries of a list, of a list below a key, or of trigger sets."""
    if isinstance(value, list):
        return [entry for index, case in enumerate(value) for entry in _of_item(index, case)]
    entries = []
    for key, part in value.items() if isinstance(value, dict) else ():
        entries += listed(value, key) if key in LISTS else []
        entries += sets_in(key, part)
    return entries


def _of_item(index: int, case: Any) -> list[Entry]:
    """Return an item of a list: a query, or a skill with the queries that should trigger it."""
    queries = listed(case, "queries")
    if not queries or "skill" not in case:
        return [Entry((index,), case)]
    shared = {"skill": case["skill"], "should_trigger": True}
    return [Entry((index, *at), _with(text, shared)) for at, text in queries]


def skill_at_top(value: Any) -> str:
    """Return the name of the skill that keys at the top of a file name, "" if there is none."""
    skills = _TOP.read(value).skills
    return skills[0] if len(skills) == 1 else ""


_TOP = Shape({_SKILL: keys.SKILL})

ADAPTER = Adapter(
    tool="trigger lists",
    about="skill-creator of https://github.com/anthropics/skills, July 2026",
    places=(
        "trigger{-,_}{eval,evals,queries}.{json,jsonl,yaml,yml}",
        "*{trigger,routing,activation}*.{json,jsonl,yaml,yml}",
    ),
    find=find,
    shape=_SHAPE,
    every=True,
    skill=skill_at_top,
)
