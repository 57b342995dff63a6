"""What a case of an evals file wants that only an agent has."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

TRIGGERS = (
    "should_trigger",
    "should_activate",
    "should_fire",
    "expected_activation",
    "must_not_activate",
)
SKILLS = ("expected_skill", "expected_activation")
_OTHERS = ("must_not_activate", "forbidden_skills")
SKILL_LISTS = ("acceptable_skills", *_OTHERS)
CHOSEN = "the skill is always in context, nobody chooses it"

NO_TURNS = "a single answer has no further turns"

FEATURES: Mapping[str, str] = {
    key: f"{key}: a single answer {why}"
    for keys, why in (
        ("expected_script expected_test cmd", "runs no scripts"),
        ("expected_references", "opens no files"),
        ("expected_files expected_artifacts required_artifacts output_files", "leaves no files"),
        ("deterministic_assertions validators graders setup", "leaves commands nothing to look at"),
        (
            "tool_assertions expected_tool expected_tools expect_tools reject_tools tools",
            "calls no tools",
        ),
        (
            "turns messages conversation query_flow prompt_sequence steps history",
            "has no further turns",
        ),
        ("workspace fixture fixtures environment", "has no workspace"),
    )
    for key in keys.split()
}
"""Keys of what needs an agent, and why; an empty value needs nothing."""


def features(value: Mapping[str, Any], skills: Collection[str]) -> Iterator[str]:
    """Name what a case wants that only an agent has."""
    for key in TRIGGERS:
        if value.get(key) is False:
            yield f"{key}: {CHOSEN}"
    for key in SKILLS:
        named = key in value and not isinstance(value[key], bool)
        wanted = [value.get(key), *_listed(value, "acceptable_skills")]
        if named and not any(skill in wanted for skill in skills):
            yield f"{key} is {value[key] or 'none'}: {CHOSEN}"
    for key in _OTHERS:
        if any(skill in _listed(value, key) for skill in skills):
            yield f"{key}: {CHOSEN}"
    yield from (FEATURES[key] for key, part in value.items() if part and key in FEATURES)


def _listed(value: Mapping[str, Any], key: str) -> list[object]:
    part = value.get(key)
    return part if isinstance(part, list) else []
