"""Features of cases in evals files that need an agent."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

TRIGGER_CASE = "it does not say clearly which skill an agent should choose"

CONTRADICTION = "they contradict each other about the skill that an agent should choose"

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


def features(value: Mapping[str, Any], read: Collection[str]) -> Iterator[str]:
    """Yield a reason for each feature of a case that is not supported.

    Args:
        value: The case.
        read: Keys that are read for agents.
    """
    left = (key for key, part in value.items() if part and key not in read)
    yield from (FEATURES[key] for key in left if key in FEATURES)
