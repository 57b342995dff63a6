from __future__ import annotations

from typing import Any

import pytest

from pytest_upskill.checks import Contains, ContainsAny, JsonSchema, NotContains, NotRegex, Regex
from pytest_upskill.checks.judge import Judge
from tests.evals import read_one


def checks(*assertions: Any) -> tuple[object, ...]:
    case = read_one(assertions=list(assertions))
    assert case.skip is None
    return case.checks


def skip(*assertions: Any) -> str | None:
    return read_one(assertions=["Says hi", *assertions]).skip


@pytest.mark.parametrize(
    ("assertion", "check"),
    [
        ({"type": "contains", "value": "hi"}, Contains(text="hi")),
        ({"type": "contains", "substring": "hi", "text": "greets"}, Contains(text="hi")),
        ({"type": "contains", "text": "hi"}, Contains(text="hi")),
        ({"type": "contains_phrase", "text": "greets", "phrase": "hi"}, Contains(text="hi")),
        ({"kind": "Contains-Phrase", "phrase": "hi"}, Contains(text="hi")),
        ({"contains": "hi"}, Contains(text="hi")),
        ({"type": "output_contains", "value": "hi"}, Contains(text="hi")),
        ({"type": "not_contains", "phrase": "hi"}, NotContains(text="hi")),
        ({"type": "contains", "value": "hi", "negate": True}, NotContains(text="hi")),
        ({"type": "contains_any", "values": ["hi", "yo"]}, ContainsAny(texts=("hi", "yo"))),
        ({"type": "contains_pattern", "pattern": "h."}, Regex(pattern="h.")),
        ({"type": "regex", "pattern": "h.", "text": "greets"}, Regex(pattern="h.")),
        ({"type": "regex", "pattern": "h.", "flags": "gis"}, Regex(pattern="(?is)h.")),
        ({"type": "regex", "value": "(?<a>h)."}, Regex(pattern="(?P<a>h).")),
        ({"type": "matches", "pattern": "(?<!h)i"}, Regex(pattern="(?<!h)i")),
        ({"type": "not_contains_pattern", "pattern": "h."}, NotRegex(pattern="h.")),
        ({"type": "regex", "pattern": "h.", "negate": True}, NotRegex(pattern="h.")),
        ({"type": "json_schema", "schema": {"type": "object"}},
         JsonSchema(schema={"type": "object"})),
        ({"type": "quality", "text": "Says hi"}, Judge(statement="Says hi")),
        ({"statement": "Says hi"}, Judge(statement="Says hi")),
        ({"type": "output_contains", "check": "Says hi"}, Judge(statement="Says hi")),
    ],
)  # fmt: skip
def test_what_a_program_can_check_is_a_check(assertion: Any, check: object) -> None:
    assert checks(assertion) == (check,)


def test_each_of_several_texts_must_hold() -> None:
    assert checks({"type": "contains_all", "values": ["a", "b"]}) == (
        Contains(text="a"),
        Contains(text="b"),
    )


@pytest.mark.parametrize(
    ("assertion", "reason"),
    [
        ({"type": "file_exists", "path": "out.csv", "description": "Writes it"},
         "assertions: file_exists: a single answer leaves no files"),
        ({"type": "contains", "value": "hi", "file": "out.csv"},
         "assertions: contains in 'out.csv': a single answer leaves no files"),
        ({"type": "tool-called", "tool": "Read"},
         "assertions: tool_called: a single answer calls no tools"),
        ({"type": "command", "run": "make"}, "assertions: command: a single answer runs nothing"),
        ({"type": "skill_triggered", "value": True},
         "assertions: skill_triggered: the skill is always in context, nobody chooses it"),
        ({"type": "max_tokens", "value": 9},
         "assertions: max_tokens: a budget is no check of the answer"),
        ({"type": "sentiment", "score": 9},
         "assertions: sentiment: no such type of assertion is known"),
        ({"type": "contains_any", "values": ["a"], "negate": True},
         "assertions: not_contains_any: no such type of assertion is known"),
        ({"type": "regex", "pattern": r"\p{L}"},
         r"assertions: pattern '\\p{L}' is none in Python: bad escape \p at position 0"),
        ({"type": "json_schema", "schema": "s.json"},
         "assertions: json_schema: the schema must stand in the assertion"),
    ],
)  # fmt: skip
def test_what_nothing_here_can_check_skips_the_case(assertion: Any, reason: str) -> None:
    assert skip(assertion) == reason
