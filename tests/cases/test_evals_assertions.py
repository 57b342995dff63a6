"""Typed assertions of other tools become checks."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_upskill.cases.adapters.choice import UNCLEAR
from pytest_upskill.checks.files import InFile
from pytest_upskill.checks.judge import Judge
from pytest_upskill.checks.text import Contains, ContainsAny, NotContains, NotRegex, Regex
from tests.evals import read_one


def checks(*assertions: Any) -> tuple[object, ...]:
    case = read_one(assertions=list(assertions))
    assert case.skip is None
    return case.checks


def skip(*assertions: Any) -> str | None:
    return read_one(assertions=list(assertions)).skip


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
        ({"type": "must_contain_any", "values": ["hi", "yo"]}, ContainsAny(texts=("hi", "yo"))),
        ({"type": "contains_pattern", "pattern": "h."}, Regex(pattern="h.")),
        ({"type": "regex", "pattern": "h.", "text": "greets"}, Regex(pattern="h.")),
        ({"type": "regex", "pattern": "h.", "flags": "gis"}, Regex(pattern="(?is)h.")),
        ({"type": "regex", "value": "(?<a>h)."}, Regex(pattern="(?P<a>h).")),
        ({"type": "matches", "pattern": "(?<!h)i"}, Regex(pattern="(?<!h)i")),
        ({"type": "output_matches", "pattern": "h."}, Regex(pattern="(?i)h.")),
        ({"type": "output_matches", "pattern": "(?i)h."}, Regex(pattern="(?i)h.")),
        ({"type": "output_not_matches", "pattern": "h."}, NotRegex(pattern="(?i)h.")),
        ({"type": "not_contains_pattern", "pattern": "h."}, NotRegex(pattern="h.")),
        ({"type": "regex", "pattern": "h.", "negate": True}, NotRegex(pattern="h.")),
        ({"type": "quality", "text": "Says hi"}, Judge(statement="Says hi")),
        ({"statement": "Says hi"}, Judge(statement="Says hi")),
        ({"type": "output_contains", "check": "Says hi"}, Judge(statement="Says hi")),
        ({"type": "required_text", "value": "hi"}, Contains(text="hi")),
        ({"type": "content_contains", "value": "hi"}, Contains(text="hi")),
        ({"type": "content_not_contains", "value": "hi"}, NotContains(text="hi")),
        ({"type": "content_includes_any", "value": ["hi", "yo"]},
         ContainsAny(texts=("hi", "yo"))),
        ({"type": "content_includes_all", "value": ["hi"]}, Contains(text="hi")),
        ({"type": "regex_excludes", "pattern": "h."}, NotRegex(pattern="h.")),
        ({"type": "response_contains", "value": "hi"}, Contains(text="hi")),
        ({"type": "icontains", "value": "hi"}, Contains(text="hi")),
        ({"type": "regex_match", "pattern": "h."}, Regex(pattern="h.")),
        ({"type": "regex_exclude", "pattern": "h."}, NotRegex(pattern="h.")),
        ({"output_match_regex": "h."}, Regex(pattern="h.")),
        ({"output_not_match_regex": "h."}, NotRegex(pattern="h.")),
        ({"type": "judge", "rubric": ["Says hi", "is kind"]}, Judge(statement="Says hi; is kind")),
        ({"type": "forbidden_text", "value": "hi"}, NotContains(text="hi")),
        ({"type": "contains_any", "values": ["hi"], "negate": True}, NotContains(text="hi")),
        ({"type": "matches_any", "patterns": ["(?i)h.", "yo"]},
         Regex(pattern="(?i:h.)|(?:yo)")),
        ({"type": "llm-rubric", "value": "Says hi"}, Judge(statement="Says hi")),
        ({"type": "file_not_contains", "path": "a.cs", "value": "x"},
         InFile(file="a.cs", check=NotContains(text="x"))),
        ({"contains": "hi", "required": True}, Contains(text="hi")),
        ({"text": "Says hi", "required": True}, Judge(statement="Says hi")),
        ({"required": ["hi"], "forbidden": []}, Contains(text="hi")),
        ("contains:hi there", Contains(text="hi there")),
        ("response_not_contains:hi", NotContains(text="hi")),
        (r"matches:h\.", Regex(pattern=r"h\.")),
        ("contains: a greeting", Judge(statement="contains: a greeting")),
        ("Contains:hi", Judge(statement="The answer has this: Contains:hi")),
        ("hi", Judge(statement="The answer has this: hi")),
    ],
)  # fmt: skip
def test_an_assertion_that_code_can_decide_becomes_a_check(assertion: Any, check: object) -> None:
    assert checks(assertion) == (check,)


def test_a_key_about_a_text_to_search_for_is_no_statement() -> None:
    case = read_one(**{"assert": {"evidence_matches": "h.", "tone": "kind", "contains": "hi"}})

    assert case.checks == (Judge(statement="tone: kind"), Contains(text="hi"))


def test_each_of_several_types_must_hold() -> None:
    assert checks({"contains": "a", "not_contains": ["b", "c"]}) == (
        Contains(text="a"),
        NotContains(text="b"),
        NotContains(text="c"),
    )


def test_each_of_several_texts_must_hold() -> None:
    assert checks({"type": "contains_all", "values": ["a", "b"]}) == (
        Contains(text="a"),
        Contains(text="b"),
    )


def test_a_pattern_among_texts_ignores_case_as_they_do() -> None:
    case = read_one(must_contain=["a", {"regex": "b."}], must_not_contain=[{"regex": "c."}])

    assert case.checks == (Contains(text="a"), Regex(pattern="(?i)b."), NotRegex(pattern="(?i)c."))


@pytest.mark.parametrize(
    ("assertion", "reason"),
    [
        ({"type": "file_changed", "path": "out.csv", "description": "Writes it"},
         "assertions: file_changed: no check here can decide it"),
        ({"type": "file_contains", "value": "hi"},
         "assertions: file_contains: no check here can decide it"),
        ({"type": "contains", "value": "hi", "file": "/etc/passwd"},
         "assertions: '/etc/passwd' is not a path in the workspace"),
        ({"type": "tool-called", "tool": "Read"},
         "assertions: tool_called: no check here can decide it"),
        ({"type": "command", "run": "make"},
         "assertions: command: no check here can decide it"),
        ({"type": "activation", "text": "It asks before it activates"},
         f"assertions: activation: {UNCLEAR}"),
        ({"type": "sentiment", "score": 9},
         "assertions: sentiment: no check here can decide it"),
        ({"type": "sentiment", "value": "glad"},
         "assertions: sentiment: no check here can decide it"),
        ({"type": "contains", "haystack": "hi"},
         "assertions: contains: no known key says what to look for"),
        ({"id": "greets-by-name", "words": ["hi"]},
         "assertions: has no known key: add 'text'"),
        ({"name": "Says hi", "weight": 2}, "assertions: has no known key: add 'text'"),
        ({"type": "contains", "description": "Says bye", "negate": True},
         "assertions: contains: no known key says what to look for"),
        ({"type": "not_contains", "description": "Says bye"},
         "assertions: not_contains: no known key says what to look for"),
        ({"type": "evidence_matches", "value": "hi"},
         "assertions: evidence_matches: no check here can decide it"),
        ("exit_status:completed", "assertions: exit_status: no check here can decide it"),
        ("evidence_contains:hi",
         "assertions: evidence_contains: no check here can decide it"),
        ({"type": "regex", "pattern": r"\p{L}"},
         (r"assertions: pattern '\\p{L}' is not a Python regular expression: bad escape \p at "
         r"character 1")),
    ],
)  # fmt: skip
def test_an_assertion_that_nothing_can_decide_skips_a_case_without_another(
    assertion: Any, reason: str
) -> None:
    assert skip(assertion) == reason
    assert skip(assertion, "Says hi") is None
    assert skip(assertion, {"type": "not_contains", "value": "bye"}) == reason


def test_what_the_question_has_already_does_not_stand_for_a_check_that_is_left_out() -> None:
    script = {"type": "script", "path": "a.py"}
    said, unsaid = {"type": "regex", "pattern": "(?i)SAY"}, {"type": "contains", "value": "hello"}

    assert skip(script, said) == "assertions: script: no check here can decide it"
    assert skip(said) is None
    assert checks(script, said, unsaid) == (Regex(pattern="(?i)SAY"), Contains(text="hello"))


@pytest.mark.parametrize(
    ("text", "pattern"),
    [
        (r"module\s+cnt\b", r"(?im)module\s+cnt\b"),
        (r"\bwait\b", r"(?im)\bwait\b"),
        (r"\[[ \t]*\][ \t]*;", r"(?im)\[[ \t]*\][ \t]*;"),
        (r"resize\(x\)", r"(?im)resize\(x\)"),
        (r"^# Technical Plan$", "(?im)^# Technical Plan$"),
        ("(?i)no refund", "(?im)no refund"),
    ],
)
def test_a_text_that_is_unmistakably_a_pattern_is_one(text: str, pattern: str) -> None:
    case = read_one(must_have=[text], must_not_have=[text])

    assert case.checks == (Regex(pattern=pattern), NotRegex(pattern=pattern))


@pytest.mark.parametrize(
    "text",
    [
        "Calls resize(x) (once)",
        r"Avoids \.indices and id: \.self",
        r"C:\Windows\System32",
        "texts.*",
        r"\[unclosed(\]",
    ],
)
def test_prose_and_paths_are_no_patterns(text: str) -> None:
    assert all(isinstance(check, Judge) for check in read_one(must=[text], must_not=[text]).checks)


def test_a_few_plain_words_beside_a_pattern_are_searched_for() -> None:
    items = [r"\bwait\b", "Validation Results", "Says how long it waits"]

    assert read_one(must_have=items).checks == (
        Regex(pattern=r"(?im)\bwait\b"),
        Regex(pattern="(?im)Validation Results"),
        Judge(statement="Says how long it waits"),
    )
    assert read_one(must_have=["wait|hold", "Stays polite"]).checks == (
        Regex(pattern="(?i)wait|hold"),
        Judge(statement="Stays polite"),
    )


def test_a_text_that_begins_with_a_flag_is_a_pattern() -> None:
    assert checks({"type": "contains", "values": ["(?i)a.", "b."]}) == (
        Regex(pattern="(?i)a."),
        Regex(pattern=r"(?i)b\."),
    )
    assert checks({"type": "contains_any", "values": ["(?i)a.", "b"]}) == (
        Regex(pattern="(?i:a.)|(?i:b)"),
    )
    assert checks({"type": "not_contains", "value": "(?s)a.b"}) == (NotRegex(pattern="(?is)a.b"),)


def test_patterns_that_must_or_must_not_match() -> None:
    assert read_one(must_match=["a."], must_not_match=["b."]).checks == (
        Regex(pattern="a."),
        NotRegex(pattern="b."),
    )
