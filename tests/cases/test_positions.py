"""JSON is read with the place of every value."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_upskill.cases.source.document import MAX_DEPTH, BadFile
from pytest_upskill.cases.source.formats import parse_json_lines, read_json

TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda inner: st.lists(inner) | st.dictionaries(TEXT, inner),
    max_leaves=20,
)  # fmt: skip

NO_COMMENTS = 'JSON has no comments: remove it, or write "$comment": "..." in the object'


def problems(text: str) -> list[str]:
    with pytest.raises(BadFile) as caught:
        read_json(text)
    return [problem.at("f") for problem in caught.value.problems]


@settings(max_examples=60, deadline=None)
@given(JSON, st.sampled_from([None, 0, 2]), st.booleans())
def test_every_place_holds_the_value_of_its_path(
    value: Any, indent: int | None, ensure_ascii: bool
) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ensure_ascii)

    document = read_json(text)

    assert document.value == value
    for path, (key_at, at) in document.offsets.items():
        part = value
        for step in path:
            part = part[step]
        assert json.JSONDecoder().raw_decode(text, at)[0] == part
        if path and isinstance(path[-1], str):
            assert json.JSONDecoder().raw_decode(text, key_at)[0] == path[-1]


@settings(max_examples=60, deadline=None)
@given(st.text(st.sampled_from('{}[]:,"\\u0d8e1-. \n/#NaInfty'), max_size=30))
def test_any_text_is_read_as_json_reads_it_or_refused(text: str) -> None:
    try:
        document = read_json(text)
    except BadFile:
        return

    assert document.value == json.loads(text)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "f:1:1: the file is empty"),
        ("[1, 2,]", "f:1:6: a comma before the closing bracket: remove it"),
        ('{"a": [1,\n\n ]}', "f:1:9: a comma before the closing bracket: remove it"),
        ('{"a": 1} // end', f"f:1:10: {NO_COMMENTS}"),
        ('{\n  # why\n  "a": 1}', f"f:2:3: {NO_COMMENTS}"),
        ("{'a': 1}", "f:1:2: JSON strings need plain double quotes"),
        ("{\u201ca\u201d: 1}", "f:1:2: JSON strings need plain double quotes"),
        ("[1,\n<<<<<<< HEAD\n2]", "f:2:1: a merge conflict: keep one of the two versions"),
        ("[1\n======= HEAD\n2]", "f:2:1: a merge conflict: keep one of the two versions"),
        ('{"a": [1', "f:1:9: the document ends too early: a closing bracket is missing"),
        ('["a\nb"]', 'f:1:4: a line break or tab in a string: write "\\n" or "\\t"'),
        ('["\\d+"]', 'f:1:3: a single backslash in a string: write "\\\\"'),
        ('["abc]', "f:1:2: a string without its closing quote"),
        ("[] []", "f:1:4: the document ends before this: remove what follows"),
        ("[1 2]", "f:1:4: a comma is missing before this"),
        ('{"a" 1}', "f:1:6: a colon is missing before this"),
        ("[ture]", "f:1:2: a value is missing here: true, false, null, a number or text in quotes"),
        (f"[{'9' * 5000}]", "f:1:2: a number has thousands of digits: write it as a string"),
    ],
)
def test_an_error_of_syntax_names_its_place_and_cure(text: str, problem: str) -> None:
    assert problems(text) == [problem]


def test_every_duplicate_key_is_named_with_the_first_of_it() -> None:
    text = '{"a": {"b": 1},\n "a": {"b": 1,\n "b": 2}, "c": {"b": 3}}'

    assert problems(text) == [
        "f:2:2: a: duplicate key (first in line 1): remove one",
        "f:3:2: a.b: duplicate key (first in line 2): remove one",
    ]


@pytest.mark.parametrize("constant", ["NaN", "Infinity", "-Infinity"])
def test_numbers_that_json_does_not_have_are_refused(constant: str) -> None:
    assert problems(f'{{"a": [0, {constant}]}}') == [
        f"f:1:11: a[1]: JSON has no {constant}: write a number"
    ]


def test_text_that_no_model_can_be_sent_is_refused() -> None:
    text = r'{"a": "\ud83d\ude00", "b": "x\ud800", "c\u0000": 1}'

    assert problems(text) == [
        r"f:1:23: b: \ud800 is half a character: write the character itself",
        r'f:1:39: ["c\u0000"]: \u0000 is not allowed in text: remove it',
    ]


@pytest.mark.parametrize("depth", [MAX_DEPTH + 1, 50_000])
def test_deep_nesting_is_refused_where_it_becomes_too_deep(depth: int) -> None:
    text = "[" * depth + "]" * depth

    assert problems(text) == [
        f"f:1:{MAX_DEPTH + 1}: nested more than {MAX_DEPTH} levels deep: flatten it"
    ]


def test_a_key_of_any_kind_can_be_written_in_a_path() -> None:
    document = read_json('{"a b": [{"c-d": 1}]}')

    problem = document.problem(("a b", 0, "c-d"), "wrong")

    assert problem.at("f") == 'f:1:18: ["a b"][0].c-d: wrong'


def test_one_document_a_line_makes_a_list() -> None:
    document = parse_json_lines('{"id": 1}\r\n\n  {"id": [2, "é"]}\n')

    assert document.value == [{"id": 1}, {"id": [2, "é"]}]
    assert document.place((1,))[0] == 3
    assert document.problem((1, "id", 1), "no").at("f") == "f:3:14: [1].id[1]: no"


def test_every_bad_line_is_reported() -> None:
    with pytest.raises(BadFile) as caught:
        parse_json_lines('{"a": 1}\n{"a": 1,}\n{"a": 1, "a": 2}\n{"a"').sound()

    assert [problem.at("f") for problem in caught.value.problems] == [
        "f:2:8: a comma before the closing bracket: remove it",
        "f:3:10: [2].a: duplicate key: remove one",
        "f:4:5: the document ends too early: a closing bracket is missing",
    ]
