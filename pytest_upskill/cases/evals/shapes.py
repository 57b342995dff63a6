"""Shapes of evals files, that is, where the cases are in a document."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeGuard

from pytest_upskill.cases.evals.keys import PROMPT_KEYS
from pytest_upskill.cases.source.json import Document, JsonPath
from pytest_upskill.cases.source.problems import BadFile

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

_TRIGGER_LISTS = {
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
"""Keys of lists of prompts in a trigger set, and whether they should trigger the skill."""

_PART = re.compile(
    r"(?:(?:activat\w*|cases|evals?|evaluations?|negative|positive|prompts|quer(?:y|ies)|routing"
    r"|set|skill|tests?|triggers?|triggering)(?:[-_ ]|$))+",
    re.IGNORECASE,
)
"""Words of a key that names a part of the file, not a skill."""


class Entry(NamedTuple):
    """A case as it is in the document."""

    path: JsonPath
    value: Any
    """Usually an object; a trigger set may have texts, which are converted to objects."""


def find_entries(document: Document) -> list[Entry]:
    """Return the cases of a document by the first shape that matches.

    Raises:
        BadFile: The document has no known shape.
    """
    value = document.value
    if isinstance(value, list):
        return _entries(value, ())
    if isinstance(value, dict):
        is_case = has_prompt(value)
        has_known_list = any(_is_known_list(key, part) for key, part in value.items())
        if has_known_list or (keys_of_cases(value) and not is_case):
            return _collect_cases(value)
        if is_case:
            return [Entry((), value)]
    what = "contains no cases: write a list of cases, or an object with such a list as 'evals'"
    raise BadFile([document.problem((), what)])


def has_prompt(value: object) -> bool:
    """Return whether a value is a case with a prompt."""
    return isinstance(value, dict) and any(key in value for key in PROMPT_KEYS)


def keys_of_cases(value: object) -> set[str]:
    """Return the top-level keys of a document that hold cases."""
    if not isinstance(value, dict):
        return set()
    return {key for key, inner in value.items() if _holds_cases(key, inner)}


def _entries(cases: Sequence[Any], path: JsonPath) -> list[Entry]:
    return [Entry((*path, index), case) for index, case in enumerate(cases)]


def _collect_cases(value: Mapping[str, Any]) -> list[Entry]:
    """Return the cases of every part of a document."""
    entries: list[Entry] = []
    for key, part in value.items():
        if key in _TRIGGER_LISTS:
            entries += _trigger_cases({key: part}, ())
        elif _is_trigger_set(part):
            entries += _trigger_cases(part, (key,), skill=None if _PART.fullmatch(key) else key)
        elif isinstance(part, list) and _holds_cases(key, part):
            entries += _entries(part, (key,))
    return entries


def _trigger_cases(
    trigger_set: Mapping[str, Any], path: JsonPath, skill: str | None = None
) -> list[Entry]:
    """Return the prompts of a trigger set, which are texts or cases, as cases.

    Args:
        trigger_set: The set.
        path: Its path in the document.
        skill: The skill that it names, if any.
    """
    entries: list[Entry] = []
    for key, should_trigger in _TRIGGER_LISTS.items():
        if not isinstance(trigger_set.get(key), list):
            continue
        keys: dict[str, Any] = {} if skill is None else {"skill": skill}
        if key.startswith("global_"):
            keys["expected_skill"] = None  # the prompts should trigger no skill at all
        for prompt_path, prompt in _entries(trigger_set[key], (*path, key)):
            case = {"query": prompt} if isinstance(prompt, str) else prompt
            if isinstance(case, dict):
                # Such a case may repeat in 'expected' that the skill should be chosen.
                case = keys | case | {"should_trigger": should_trigger, "expected": None}
            entries.append(Entry(prompt_path, case))
    return entries


def _holds_cases(key: str, value: object) -> bool:
    return _is_known_list(key, value) or _is_list_of_cases(value)


def _is_known_list(key: str, value: object) -> bool:
    is_list = isinstance(value, list) and (key in _LISTS or key in _TRIGGER_LISTS)
    return is_list or _is_trigger_set(value)


def _is_trigger_set(value: object) -> TypeGuard[Mapping[str, Any]]:
    if not isinstance(value, dict):
        return False
    return any(isinstance(value.get(key), list) for key in _TRIGGER_LISTS)


def _is_list_of_cases(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(map(has_prompt, value))
