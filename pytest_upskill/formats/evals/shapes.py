"""Shapes of evals files: where in a document its cases stand."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeGuard

from pytest_upskill.formats.evals.case import PROMPTS
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
"""Keys that hold the cases of an object."""

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
"""Keys that hold questions of a trigger set, and whether the skill is for them."""

_PART = re.compile("activat|eval|quer|routing|trigger", re.IGNORECASE)
"""What is in the name of a part of a file, and not of a skill."""

Entries = list[tuple[JsonPath, Any]]
"""Where cases stand, and what stands there."""


def find_entries(document: Document) -> Entries:
    """Find the cases: the first shape that the document has tells where.

    Raises:
        BadFile: It has no shape that is known.
    """
    for has_shape, find in _SHAPES:
        if has_shape(document.value):
            return find(document.value, ())
    what = "holds no cases: write a list of them, alone or as 'evals' of an object"
    raise BadFile([document.problem((), what)])


def asks(value: object) -> bool:
    """Tell whether an entry asks something."""
    return isinstance(value, dict) and any(key in value for key in PROMPTS)


def keys_of_cases(value: object) -> set[str]:
    """List the keys of a whole document that hold cases."""
    if not isinstance(value, dict):
        return set()
    return {key for key, inner in value.items() if _holds_cases(key, inner)}


def _listed(value: Sequence[Any], path: JsonPath) -> Entries:
    return [((*path, index), entry) for index, entry in enumerate(value)]


def _collected(value: Mapping[str, Any], path: JsonPath) -> Entries:
    """Find the cases of every part of an object."""
    found: Entries = []
    for key, inner in value.items():
        if key in _TRIGGERS:
            found += _triggers({key: inner}, path)
        elif _is_trigger_set(inner):
            found += _triggers(inner, (*path, key), skill="" if _PART.search(key) else key)
        elif isinstance(inner, list) and _holds_cases(key, inner):
            found += _listed(inner, (*path, key))
    return found


def _triggers(value: Mapping[str, Any], path: JsonPath, skill: str = "") -> Entries:
    """Find the questions of a trigger set: texts, or cases.

    Args:
        value: The set.
        path: Where it stands.
        skill: The skill that it is for, where it says so.
    """
    return [
        (place, _triggering(entry, triggers, skill))
        for key, triggers in _TRIGGERS.items()
        if isinstance(value.get(key), list)
        for place, entry in _listed(value[key], (*path, key))
    ]


def _triggering(entry: object, triggers: bool, skill: str) -> object:
    """Write a question of a trigger set as a case, whose ``expected`` can only say the same."""
    if isinstance(entry, str):
        entry = {"query": entry}
    if not isinstance(entry, dict):
        return entry
    of_skill = {"skill": skill} if skill else {}
    return of_skill | entry | {"should_trigger": triggers, "expected": None}


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
    return isinstance(value, list) and bool(value) and all(map(asks, value))


_SHAPES: tuple[tuple[Callable[[Any], bool], Callable[[Any, JsonPath], Entries]], ...] = (
    (lambda value: isinstance(value, list), _listed),
    (_has_lists, _collected),
    (asks, _single),
    (_has_lists_that_ask, _collected),
)
"""Shapes of a document, and where each has its cases."""
