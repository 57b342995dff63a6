"""Defects of evals files: which refuse the file, which skip a case, and which only warn."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_upskill.cases.evals.reader import parse_evals, read_evals
from pytest_upskill.cases.source.document import BadFile
from tests.evals import SAYS_HI, problems, read, read_one, skill


@pytest.mark.parametrize("document", [[], {"evals": []}])
def test_a_file_without_cases_is_a_warning(document: Any) -> None:
    evals = read(document)

    assert evals.cases == ()
    assert [warning.at("f") for warning in evals.warnings] == ["f: contains no cases"]


def test_an_unknown_key_that_looks_like_an_expectation_is_reported_once() -> None:
    entry = {"prompt": "a", "assertions": ["b"], "category": "x", "expected_tone": "warm"}

    warnings = read([entry, entry | {"prompt": "c", "must_rhyme": False}]).warnings

    assert [warning.at("f") for warning in warnings] == ["f:8:3: [0].expected_tone: is not read"]


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        (3, ("f:1:1: contains no cases: write a list of cases, or an object with such a list as "
            "'evals'")),
        ({"a": [1]},
         ("f:1:1: contains no cases: write a list of cases, or an object with such a list as "
         "'evals'")),
        ([1], "f:2:2: [0]: must be an object, got 1"),
        ([{"prompt": " "}], 'f:3:13: [0].prompt: must be non-empty text, got " "'),
        ({"evals": [{"question": 3}]},
         "f:4:16: evals[0].question: must be non-empty text, got 3"),
        ([{"prompt": "a", "assertions": 1}],
         "f:4:17: [0].assertions: must be text or an object, got 1"),
        ([{"prompt": "a", "assertions": ["b", 1]}],
         "f:6:4: [0].assertions[1]: must be text or an object, got 1"),
        ([{"prompt": "a", "must_contain": ["b", 1]}],
         "f:6:4: [0].must_contain[1]: must be text or an object, got 1"),
        ([{"prompt": "a", "assertions": [{"name": ""}]}],
         "f:5:4: [0].assertions[0]: is empty: add 'text'"),
        ([{"prompt": "a", "assertions": [{"type": "contains", "value": ""}]}],
         "f:5:4: [0].assertions[0]: has no text to look for: add 'value'"),
        ('[{"prompt": "a", "prompt": "b"}]', "f:1:18: [0].prompt: duplicate key: remove one"),
    ],
)  # fmt: skip
def test_a_defect_is_named_with_its_line(document: Any, problem: str) -> None:
    assert problems(document) == [problem]


def test_all_defects_of_a_file_are_reported_at_once() -> None:
    document = [1, {"prompt": " "}, {"prompt": "a", "assertions": [3, 4]}]

    assert len(problems(document)) == 4


@pytest.mark.parametrize(
    ("odd", "problem"),
    [
        ('{"id": "odd", "prompt": "", "assertions": ["b"]}',
         '[0].prompt: must be non-empty text, got ""'),
        ('{"id": "odd", "assertions": ["b"]}', "[0]: no prompt: add 'prompt'"),
        ('{"id": "odd", "prompt": "a", "assertions": [3]}',
         "[0].assertions[0]: must be text or an object, got 3"),
        ('{"id": "odd", "prompt": "a", "prompt": "b"}', "[0].prompt: duplicate key: remove one"),
        ('{"id": "odd", "prompt": "a", "x": NaN}', "[0].x: JSON has no NaN: write a number"),
        ("7", "[0]: must be an object, got 7"),
    ],
)  # fmt: skip
def test_an_entry_that_cannot_be_read_skips_only_itself(odd: str, problem: str) -> None:
    evals = read(f'[{odd},\n{{"id": "even", "prompt": "Say hi", "assertions": ["Says hi"]}}]')

    first, second = evals.cases
    assert first.skip == f"cannot be read: {problem}"
    assert (second.id, second.skip, second.checks) == ("even", None, SAYS_HI)
    assert [each.what for each in evals.warnings] == [
        f"{problem.partition(': ')[2]} (the case is skipped)"
    ]


def test_a_line_that_is_not_json_skips_only_itself() -> None:
    good = '{"id": "even", "prompt": "Say hi", "assertions": ["Says hi"]}'

    first, second = read(f'{{"id": "odd",\n{good}\n', suffix=".jsonl").cases

    assert first.skip
    assert first.skip.startswith("cannot be read: ")
    assert (second.id, second.skip) == ("even", None)


def test_a_list_that_is_given_twice_is_refused_as_its_first_cases_are_lost() -> None:
    document = '{"evals": [{"prompt": "a"}], "evals": [{"prompt": "b"}]}'

    assert problems(document) == ["f:1:30: evals: duplicate key: remove one"]


@pytest.mark.parametrize(
    ("context", "key"), [({"files": {"a": "x"}, "cwd": "/tmp"}, "cwd"), (["a"], '["a"]')]
)
def test_context_that_cannot_be_sent_skips_the_case(context: Any, key: str) -> None:
    case = read_one(context=context, assertions=["Says hi"])

    assert case.skip == f"context: {key} is not sent: write it as text, or as 'files'"


def test_keys_beside_the_cases_that_look_like_expectations_are_reported() -> None:
    document = {
        "evals": [{"prompt": "a", "assertions": ["b"]}],
        "deterministic_checks": ["c"],
        "trigger_threshold": 0.5,
        "trigger_policy": {"runs": 3},
    }

    assert [warning.at("f") for warning in read(document).warnings] == [
        "f:10:2: deterministic_checks: is not read",
        "f:14:2: trigger_policy: is not read",
    ]


KEYS = st.sampled_from(
    ["evals", "cases", "tests", "id", "name", "prompt", "query", "question", "assertions",
     "expectations", "expected", "expected_output", "expected_behavior", "expected_skill",
     "should_trigger", "should_not_trigger", "trigger_evals", "negative", "must_contain",
     "required_regex", "must_include", "expected_activation", "turns", "type", "text", "value",
     "pattern", "flags", "file", "negate", "must_not", "ground_truth", "context", "rubric", "tags",
     "files", "x", "check", "must", "forbidden_skills", "contains_any", "matches_any"]
)  # fmt: skip
LEAVES = (
    st.none()
    | st.booleans()
    | st.integers(-2, 2)
    | st.sampled_from(["", " ", "a", "(", "contains", "regex", "not_regex", "json_schema", "csv",
                       "contains:a", "a_b:c", "a == b"])
)  # fmt: skip
DOCUMENTS = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=5),
    max_leaves=30,
)
WRITERS: dict[str, Callable[[Any], str]] = {
    ".json": json.dumps,
    ".jsonl": lambda document: f"\n{json.dumps(document)}\n",
    ".yaml": yaml.safe_dump,
}


@settings(max_examples=300, deadline=None)
@given(
    st.lists(DOCUMENTS, max_size=3) | st.dictionaries(KEYS, DOCUMENTS, max_size=3) | LEAVES,
    st.sampled_from(list(WRITERS)),
)
def test_any_document_is_read_or_refused_line_by_line(document: Any, suffix: str) -> None:
    text = WRITERS[suffix](document)
    try:
        evals = read_evals(
            parse_evals(text, suffix=suffix), owner=skill("csv", lambda _: {}), find=skill
        )
    except BadFile as error:
        found = [problem.at("f") for problem in error.problems]
        assert found
        assert all(re.fullmatch(r"f:\d+:\d+: .+", line) for line in found)
    else:
        names = [case.id for case in evals.cases]
        assert len(set(names)) == len(names)
        assert not any(re.search(r"::|\[|\]", name) for name in names)
        # Whatever is asked has something that must hold of the answer.
        asked = [case for case in evals.cases if not case.skip]
        assert all(case.input.strip() and (case.checks or case.trigger) for case in asked)
