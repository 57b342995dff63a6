"""YAML is read as JSON would be, with the place of every value."""

from __future__ import annotations

import json
import pickle
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_upskill.cases.source.document import BadFile
from pytest_upskill.cases.source.formats import read_json
from pytest_upskill.cases.source.yaml import parse_yaml

NO_COLON = "mapping values are not allowed in this context"
COLON = "(quote a value with ': ', or indent it as the lines before)"
TEXT = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), max_size=8)
DATA = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=10,
)


def problems(text: str) -> list[str]:
    with pytest.raises(BadFile) as caught:
        parse_yaml(text).sound()
    return [problem.at("f") for problem in caught.value.problems]


def test_a_document_is_what_json_would_make_of_it() -> None:
    text = """\
# Cases of a skill.
- id: 1
  prompt: |
    Two
    lines
  when: 2026-11-21
  flow: {yes: true, ratio: 0.5, none: ~}
"""

    assert parse_yaml(text).value == [
        {
            "id": 1,
            "prompt": "Two\nlines\n",
            "when": "2026-11-21",
            "flow": {"yes": True, "ratio": 0.5, "none": None},
        }
    ]


def test_a_value_knows_its_line_and_a_problem_its_column() -> None:
    document = parse_yaml("evals:\n  - id: é\n    prompt: 3\n")

    assert document.place(("evals", 0, "prompt"))[0] == 3
    problem = document.problem(("evals", 0, "prompt"), "must be text")
    assert problem.at("f") == "f:3:13: evals[0].prompt: must be text"
    problem = document.problem(("evals", 0, "prompt"), "unknown", key=True)
    assert problem.at("f") == "f:3:5: evals[0].prompt: unknown"


@pytest.mark.parametrize(
    ("written", "value"),
    [("No", "No"), ("on", "on"), ("12:30", "12:30"), ("010", "010"), ("1_000", "1_000"),
     ("0x1F", "0x1F"), (".inf", ".inf"), ("2026-11-21", "2026-11-21"), ("true", True), ("-5", -5),
     (".5", 0.5), ("1e3", 1000.0), ("~", None)],
)  # fmt: skip
def test_only_what_json_has_too_is_no_text(written: str, value: object) -> None:
    (read,) = parse_yaml(f"- {written}").value

    assert (read, isinstance(read, str)) == (value, isinstance(value, str))


def test_a_number_is_text_as_it_was_written() -> None:
    versions = parse_yaml("[3.10, 49.90, 1e3, 7]").value

    assert list(map(str, versions)) == ["3.10", "49.90", "1e3", "7"]
    assert json.dumps(pickle.loads(pickle.dumps(versions))) == "[3.1, 49.9, 1000.0, 7]"


@settings(max_examples=60, deadline=None)
@given(DATA)
def test_what_json_can_hold_is_the_same_in_yaml(value: Any) -> None:
    text = yaml.safe_dump(value, allow_unicode=True)

    document = parse_yaml(text).sound()

    assert document.value == value
    assert document.offsets.keys() == read_json(json.dumps(value)).offsets.keys()


@pytest.mark.parametrize(
    "text",
    ["&a [*a]", "&a {b: [*a]}", "\n".join(
        ["- &a0 [1]", *(f"- &a{n + 1} [*a{n}]" for n in range(200))])],
    ids=["list", "object", "chain"],
)  # fmt: skip
def test_aliases_nest_no_deeper_than_brackets(text: str) -> None:
    (problem,) = problems(text)

    assert problem.endswith("nested more than 100 levels deep: flatten it")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "f:1:1: the file is empty"),
        ("# nothing\n", "f:1:1: the file is empty"),
        ("a: 1\nb: 2\na: 3\n", "f:3:1: a: duplicate key (first in line 1): remove one"),
        ("a: b: c\n",
         f"f:1:5: not YAML: {NO_COLON} {COLON}"),
        ("a: &b\nc: [*d]\n",
         "f:2:5: not YAML: found undefined alias (quote the value: it begins with '*')"),
        ("a:\n  - 'b\n  - c\n",
         "f:2:5: not YAML: found unexpected end of stream (close the quote)"),
        ("a:\n  - [b\n  - c\n",
         "f:4:1: not YAML: did not find expected ',' or ']'"),
        ("a: {{ b }}",
         """f:1:5: a["?"]: a key must be text: quote a value that begins with '{{'"""),
        ("a: 1\n\tb: 2\n",
         "f:2:1: not YAML: found a tab character that violates indentation (indent with spaces)"),
        ("a: 1\n--- \nb: 2\n", "f:2:1: not YAML: found another document"),
        ("a: \x07\n", "f:1:4: not YAML: control character U+0007: remove it"),
        ("[" * 200, "f:1:101: nested more than 100 levels deep: flatten it"),
        ("\n".join(["a: &a [1]"] + [f"{b}: &{b} [{', '.join([f'*{a}'] * 10)}]" for a, b in
                                    zip("abcdefg", "bcdefgh", strict=True)]),
         "f: contains over 100,000 values: split it"),
        ("a: {<<: {b: 1}}", "f:1:5: a[\"<<\"]: '<<' is not read: write what it would merge in"),
        ("a:\n  b: !!int x", 'f:2:3: a.b: "x" is not a valid int: quote it, without a tag'),
        ('a: !!int ""', 'f:1:1: a: "" is not a valid int: quote it, without a tag'),
        ("a: !!bool x", 'f:1:1: a: "x" is not a valid bool: quote it, without a tag'),
        (f"a: -{'9' * 5000}",
         f'f:1:1: a: "-{"9" * 37}… is not a valid int: quote it, without a tag'),
        ('a: "\\0"', r"f:1:1: a: \u0000 is not allowed in text: remove it"),
    ],
)  # fmt: skip
def test_yaml_beyond_plain_data_is_refused_in_one_line(text: str, problem: str) -> None:
    assert problems(text) == [problem]
