"""The keys that a case of an evals file may have, in the formats of many tools."""

from __future__ import annotations

from collections.abc import Mapping

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
