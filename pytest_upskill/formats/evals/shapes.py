"""Shapes of evals files, that is, the places of the cases in a document."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
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
    for has_shape, find in _SHAPES:
        if has_shape(document.value):
            return find(document.value, ())
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


def _listed(value: Sequence[Any], path: JsonPath) -> Entries:
    return [((*path, index), entry) for index, entry in enumerate(value)]


def _collected(value: Mapping[str, Any], path: JsonPath) -> Entries:
    """Return the cases of every part of an object."""
    found: Entries = []
    for key, inner in value.items():
        if key in _TRIGGERS:
            found += _triggers({key: inner}, path)
        elif _is_trigger_set(inner):
            found += _triggers(inner, (*path, key), skill="" if _PART.fullmatch(key) else key)
        elif isinstance(inner, list) and _holds_cases(key, inner):
            found += _listed(inner, (*path, key))
    return found


def _triggers(value: Mapping[str, Any], path: JsonPath, skill: str = "") -> Entries:
    """Return the questions of a trigger set, which are texts or cases, as cases.

    Args:
        value: The set.
        path: Its path in the document.
        skill: The skill that it names, if any.
    """
    return [
        (place, _triggering(entry, triggers, skill, anywhere=key.startswith("global_")))
        for key, triggers in _TRIGGERS.items()
        if isinstance(value.get(key), list)
        for place, entry in _listed(value[key], (*path, key))
    ]


def _triggering(entry: object, triggers: bool, skill: str, *, anywhere: bool) -> object:
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


def _single(value: Mapping[str, Any], path: JsonPath) -> Entries:
    return [(path, value)]


def _holds_cases(key: str, value: object) -> bool:
    if _is_trigger_set(value) or (key in _TRIGGERS and isinstance(value, list)):
        return True
    return isinstance(value, list) and (key in _LISTS or _all_ask(value))


def _has_lists(value: object) -> bool:
    return isinstance(value, dict) and any(
        _is_trigger_set(part) or (key in {*_LISTS, *_TRIGGERS} and isinstance(part, list))
        for key, part in value.items()
    )


def _has_lists_that_ask(value: object) -> bool:
    return isinstance(value, dict) and any(map(_all_ask, value.values()))


def _is_trigger_set(value: object) -> TypeGuard[Mapping[str, Any]]:
    return isinstance(value, dict) and any(isinstance(value.get(key), list) for key in _TRIGGERS)


def _all_ask(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(map(has_prompt, value))


_SHAPES: tuple[tuple[Callable[[Any], bool], Callable[[Any, JsonPath], Entries]], ...] = (
    (lambda value: isinstance(value, list), _listed),
    (_has_lists, _collected),
    (has_prompt, _single),
    (_has_lists_that_ask, _collected),
)
"""Tests for the shapes of a document, each with the function that returns its cases."""
