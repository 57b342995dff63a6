"""Where an evals file has its cases, and which keys they may have, in the formats of many tools."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeGuard

from pytest_upskill.cases.source.document import BadFile, Document, JsonPath

PROMPT_KEYS = ("prompt", "input", "question", "query", "task", "instruction", "user_request")
"""Keys of the prompt; the first that is present wins."""

NAME_KEYS = ("id", "name", "eval_name", "slug", "title")
"""Keys of the name of a case."""

DESCRIPTION_KEYS = ("expected_output", "expected", "expect")
"""Keys that hold assertions, or the expected answer if their value is text."""
ASSERTION_KEYS = (
    "assertions",
    "assert",
    "expectations",
    "expected_behavior",
    "expected_behaviors",
    "anti_expectations",
    "checks",
    "acceptance",
    "acceptance_criteria",
    "rubric",
    "criteria",
    "must",
    "must_have",
    *DESCRIPTION_KEYS,
)
STATEMENT_PREFIXES: Mapping[str, str] = {
    "must_include": "The answer includes this: ",
    "must_not_include": "The answer does not include this: ",
    "expected_output_characteristics": "The answer has this: ",
    "must_do": "The answer does this: ",
    "must_avoid": "The answer avoids this: ",
    **dict.fromkeys(
        ("must_not", "must_not_have", "must_not_do", "failure_conditions", "fail"),
        "The answer does not do this: ",
    ),
}
"""Keys of texts that are not statements, with the prefix that makes them statements."""

SEARCH_KEYS: Mapping[str, str] = {
    "must_contain": "contains",
    "expected_output_contains": "contains",
    "must_not_contain": "not_contains",
    "required_regex": "regex",
    "forbidden_regex": "not_regex",
}
"""Keys of texts to search for, with the type of assertion that each stands for."""

OWNER_KEYS = frozenset(
    {"skill", "skill_name", "skill_under_test", "target_skill", "target_skills", "skills"}
)
"""Keys that name the skill that a case belongs to."""

TRIGGER_KEYS = (
    "should_trigger",
    "should_activate",
    "should_fire",
    "expected_activation",
    "expected_trigger",
    "expect_activation",
    "expect_trigger",
)
"""Keys that say whether the skill should be taken, or name the one that should."""

EXPECTED_SKILL_KEYS = (
    "expected_skill",
    "expect_skill",
    "expected_skills",
    "expected_activation",
    "expected_triggers",
    "skills_expected_to_activate",
    "preferred_skill",
)
"""Keys that name the skill that should be taken; null for none."""

OWNER_HINT_KEYS = (*EXPECTED_SKILL_KEYS, "should_trigger")
"""Keys that may name the skill an agent should choose; in a shared file the case belongs to it."""

FORBIDDEN_SKILL_KEYS = ("must_not_activate", "forbidden_skills")
"""Keys of skills that should not be taken."""

ACCEPTABLE_SKILLS_KEY = "acceptable_skills"

OUTPUT_FILE_KEYS = ("expected_files", "expected_artifacts", "required_artifacts", "output_files")
"""Keys of files that an agent should leave."""

WORKSPACE_KEYS = ("workspace", "fixture", "fixtures")
"""Keys of the files that an agent finds."""

AGENT_REASONS: Mapping[str, str] = {
    key: f"{key}: a single answer {why}"
    for keys, why in (
        ("expected_script expected_test cmd", "runs no scripts"),
        ("expected_references", "opens no files"),
        (" ".join(OUTPUT_FILE_KEYS), "leaves no files"),
        (
            "deterministic_assertions validators graders setup",
            "leaves nothing for commands to look at",
        ),
        (
            "tool_assertions expected_tool expected_tools expect_tools reject_tools tools",
            "calls no tools",
        ),
        (
            "turns messages conversation query_flow prompt_sequence steps history",
            "has no further turns",
        ),
        (f"{' '.join(WORKSPACE_KEYS)} environment", "has no workspace"),
    )
    for key in keys.split()
}
"""Why a single answer is not enough for a case with one of these keys."""


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
