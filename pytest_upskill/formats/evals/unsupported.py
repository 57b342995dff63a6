"""Features of cases in evals files that need an agent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pytest_upskill.formats.evals.owner import Owner, names_in

TRIGGERS = (
    "should_trigger",
    "should_activate",
    "should_fire",
    "expected_activation",
    "expected_trigger",
    "expect_activation",
    "expect_trigger",
    "must_not_activate",
)
SKILLS = (
    "expected_skill",
    "expect_skill",
    "expected_skills",
    "expected_activation",
    "expected_triggers",
    "skills_expected_to_activate",
    "preferred_skill",
)
_OTHERS = ("must_not_activate", "forbidden_skills")
_WORDS = {"true": True, "yes": True, "false": False, "no": False}
SKILL_LISTS = ("acceptable_skills", *_OTHERS)
TRIGGER_CASE = "trigger case: the skill is always in context, so nothing chooses it"

NO_TURNS = "a single answer has no further turns"

FEATURES: Mapping[str, str] = {
    key: f"{key}: a single answer {why}"
    for keys, why in (
        ("expected_script expected_test cmd", "runs no scripts"),
        ("expected_references", "opens no files"),
        ("expected_files expected_artifacts required_artifacts output_files", "leaves no files"),
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
        ("workspace fixture fixtures environment", "has no workspace"),
    )
    for key in keys.split()
}
"""Keys with a value that needs an agent, and why."""


def features(value: Mapping[str, Any], owner: Owner | None) -> Iterator[str]:
    """Yield a reason for each feature of a case that needs an agent.

    Args:
        value: The case.
        owner: The skill that it belongs to, if any.
    """
    for key in dict.fromkeys((*TRIGGERS, *SKILLS)):
        given = _WORDS.get(str(value.get(key)).lower(), value.get(key))
        names = [] if key in _OTHERS else list(names_in(given))
        named = names or (key in SKILLS and key in value and not isinstance(given, bool))
        acceptable = [*names, *names_in(value.get("acceptable_skills"))]
        if key in TRIGGERS and given is False:
            yield f"{key}: {TRIGGER_CASE}"
        elif named and not (owner and any(map(owner.is_called, acceptable))):
            yield f"{key} is {', '.join(names) or 'none'}: {TRIGGER_CASE}"
    for key in _OTHERS:
        if owner is not None and any(map(owner.is_called, names_in(value.get(key)))):
            yield f"{key}: {TRIGGER_CASE}"
    yield from (FEATURES[key] for key, part in value.items() if part and key in FEATURES)
