"""Defects of evals files: which refuse the file, which skip a case, and which only warn."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_upskill.cases.adapters import registry
from tests.evals import SAYS_HI, problems, read, read_one

NO_CASES = registry.unfit().problems[0].what


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
        (3, f"f:1:1: {NO_CASES}"),
        ({"a": [1]}, f"f:1:1: {NO_CASES}"),
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
         "f:5:4: [0].assertions[0]: has no known key: add 'text'"),
        ([{"prompt": "a", "assertions": [{"type": "contains", "value": ""}]}],
         "f:5:4: [0].assertions[0]: has no text to look for: add one"),
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
        ('{"id": "odd", "prompt": 7, "assertions": ["b"]}',
         "[0].prompt: must be non-empty text, got 7"),
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


@pytest.mark.parametrize("context", [{"files": {"a": "x"}, "cwd": "/tmp"}, ["a"]])
def test_context_that_cannot_be_sent_skips_the_case(context: Any) -> None:
    case = read_one(context=context, assertions=["Says hi"])

    assert case.skip == "context: is not sent: write it as text, or as 'files'"


@pytest.mark.parametrize("key", ["execution", "description"])
def test_a_case_with_an_unknown_key_has_nothing_to_check(key: str) -> None:
    evals = read([{"prompt": "a", "assertions": ["b"]}, {"prompt": "c", key: ["d"]}])

    assert evals.cases[1].skip == "nothing to check: add assertions"
    assert [each for each in evals.warnings if not each.is_hint] == []
