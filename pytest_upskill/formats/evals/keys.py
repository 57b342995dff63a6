"""The keys that a case of an evals file may have, in the formats of many tools."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_upskill.formats.evals.owner import NAMING
from pytest_upskill.formats.evals.triggers import TRIGGER_KEYS
from pytest_upskill.formats.evals.unsupported import FEATURES
from pytest_upskill.formats.statement_marks import MARK_KEY

PROMPTS = ("prompt", "input", "question", "query", "task", "instruction", "user_request")
"""Keys of the question; the first that is present wins."""

NAMES = ("id", "name", "eval_name", "slug", "title")
"""Keys of the name of a case."""

DESCRIPTIONS = ("expected_output", "expected", "expect")
"""Keys that hold assertions, or the expected answer if their value is text."""
ASSERTIONS = (
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
    *DESCRIPTIONS,
)
STATED: Mapping[str, str] = {
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

SOUGHT: Mapping[str, str] = {
    "must_contain": "contains",
    "expected_output_contains": "contains",
    "must_not_contain": "not_contains",
    "required_regex": "regex",
    "forbidden_regex": "not_regex",
}
"""Keys of texts to search for, with the type of assertion that each stands for."""

READ = {
    *(*PROMPTS, *NAMES, *ASSERTIONS, *STATED, *SOUGHT, *TRIGGER_KEYS, *NAMING),
    *(MARK_KEY, "ground_truth", "files", "context", "tags"),
    *FEATURES,
}
"""All keys that are read."""
