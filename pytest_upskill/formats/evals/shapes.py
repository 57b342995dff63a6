"""Shapes of evals files, that is, the places of the cases in a document."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeGuard

from pytest_upskill.formats.evals.keys import PROMPTS
from pytest_upskill.formats.source.json import Document, JsonPath
from pytest_upskill.formats.source.problems import BadFile

_LISTS = (
    "evals",
    "cases",
    "tests",
    "evaluations",
    "output_evals",
    "trigger_evals",
    "scenarios",
    "queries",
    "test_cases",
)
"""Keys of lists of cases."""

_TRIGGERS = {
    "should_trigger": True,
    "should_trigger_prompts": True,
    "positive": True,
    "positive_triggers": True,
    "should_not_trigger": False,
    "should_not_trigger_prompts": False,
    "global_should_not_trigger": False,
    "negative": False,
    "negative_triggers": False,
}
"""Keys of lists of questions in a trigger set, and whether they should trigger the skill."""

_PART = re.compile(
    r"(?:(?:activat\w*|cases|evals?|evaluations?|negative|positive|prompts|quer(?:y|ies)|routing"
    r"|set|skill|tests?|triggers?|triggering)(?:[-_ ]|$))+",
    re.IGNORECASE,
)
"""Words of a key that names a part of the file, not a skill."""

Entries = list[tuple[JsonPath, Any]]
"""Paths and values of cases."""


def find_entries(document: Document) -> Entries:
    """Return the cases of a document by the first shape that matches.

    Raises:
        BadFile: The document has no known shape.
    """
    value = document.value
    if isinstance(value, list):
        return _entries(value, ())
    if isinstance(value, dict):
        asks = has_prompt(value)
        if any(_has_known_list(*part) for part in value.items()) or (
            keys_of_cases(value) and not asks
        ):
            return _collect_cases(value)
        if asks:
            return [((), value)]
    what = "contains no cases: write a list of cases, or an object with such a list as 'evals'"
    raise BadFile([document.problem((), what)])


def has_prompt(value: object) -> bool:
    """Return whether an entry has a question."""
    return isinstance(value, dict) and any(key in value for key in PROMPTS)


def keys_of_cases(value: object) -> set[str]:
    """Return the top-level keys of a document that hold cases."""
    if not isinstance(value, dict):
        return set()
    return {key for key, inner in value.items() if _holds_cases(key, inner)}


def _entries(value: Sequence[Any], path: JsonPath) -> Entries:
    return [((*path, index), entry) for index, entry in enumerate(value)]


def _collect_cases(value: Mapping[str, Any]) -> Entries:
    """Return the cases of every part of a document."""
    found: Entries = []
    for key, inner in value.items():
        if key in _TRIGGERS:
            found += _trigger_cases({key: inner}, ())
        elif _is_trigger_set(inner):
            found += _trigger_cases(inner, (key,), skill="" if _PART.fullmatch(key) else key)
        elif isinstance(inner, list) and _holds_cases(key, inner):
            found += _entries(inner, (key,))
    return found


def _trigger_cases(value: Mapping[str, Any], path: JsonPath, skill: str = "") -> Entries:
    """Return the questions of a trigger set, which are texts or cases, as cases.

    Args:
        value: The set.
        path: Its path in the document.
        skill: The skill that it names, if any.
    """
    return [
        (place, _as_trigger_case(entry, triggers, skill, anywhere=key.startswith("global_")))
        for key, triggers in _TRIGGERS.items()
        if isinstance(value.get(key), list)
        for place, entry in _entries(value[key], (*path, key))
    ]


def _as_trigger_case(entry: object, triggers: bool, skill: str, *, anywhere: bool) -> object:
    """Convert a question of a trigger set to a case, without its redundant ``expected``.

    Args:
        entry: The question, a text or a case.
        triggers: Whether it should trigger the skill.
        skill: The skill that it is for, "" for that of the file.
        anywhere: Whether it should trigger no skill at all.
    """
    if isinstance(entry, str):
        entry = {"query": entry}
    if not isinstance(entry, dict):
        return entry
    of_skill = {"skill": skill} if skill else {}
    of_none = {"expected_skill": None} if anywhere else {}
    return of_skill | of_none | entry | {"should_trigger": triggers, "expected": None}


def _holds_cases(key: str, value: object) -> bool:
    return _has_known_list(key, value) or _all_ask(value)


def _has_known_list(key: str, value: object) -> bool:
    return _is_trigger_set(value) or (isinstance(value, list) and key in {*_LISTS, *_TRIGGERS})


def _is_trigger_set(value: object) -> TypeGuard[Mapping[str, Any]]:
    return isinstance(value, dict) and any(isinstance(value.get(key), list) for key in _TRIGGERS)


def _all_ask(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(map(has_prompt, value))
