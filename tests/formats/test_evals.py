from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_upskill.checks import Contains, NotContains, NotRegex, Regex
from pytest_upskill.checks.judge import Judge
from pytest_upskill.formats.evals.reader import read_evals
from pytest_upskill.formats.source.problems import BadFile
from tests.evals import problems, read, read_one, skill

SAYS_HI = (Judge(statement="Says hi"),)


@pytest.mark.parametrize(
    "document",
    [
        {"skill_name": "csv", "evals": [{"id": 1, "prompt": "Say hi", "assertions": ["Says hi"]}]},
        {"evals": [{"id": 1, "prompt": "Say hi", "files": [], "expectations": ["Says hi"]}]},
        [{"id": "1", "prompt": "Say hi", "expectations": ["Says hi"], "scenario_type": "usual"}],
        [{"id": "1", "question": "Say hi", "expected_skill": "csv", "expected_script": None,
          "expected_behavior": ["Says hi"]}],
        {"version": "1", "defaults": {"timeout_sec": 9}, "cases": [
            {"id": "1", "question": "Say hi", "expected_behavior": ["Says hi"],
             "environment": {}}]},
        {"tests": [{"id": 1, "input": "Say hi", "expected": ["Says hi"]}]},
        {"evals": [{"id": 1, "user_request": "Say hi", "expected_activation": "csv",
                    "expected_behavior": "Says hi"}]},
        {"skills": ["csv"], "id": 1, "query": "Say hi", "expected_behavior": ["Says hi"]},
        {"skill": "csv", "output_evals": [
            {"name": "1", "prompt": "Say hi", "expected_behaviors": ["Says hi"]}]},
        {"cases": [{"name": 1, "prompt": "Say hi", "assert": [
            {"type": "llm_judge", "criterion": "Says hi"}]}]},
        {"evals": [{"id": 1, "prompt": "Say hi", "assertions": [
            {"name": "greets", "description": "Says hi"}]}]},
        {"evals": [{"id": 1, "prompt": "Say hi", "rubric": [
            {"dimension": "manners", "pass_if": "Says hi"}]}]},
        {"evals": [{"id": 1, "prompt": "Say hi", "assertions": [
            {"id": "a", "text": "Says hi", "passed": True, "evidence": "hi"}]}]},
        {"skill_name": "csv", "scenarios": [{"id": 1, "prompt": "Say hi", "must": ["Says hi"]}]},
        [{"name": "1", "input": {"prompt": "Say hi"}, "assertions": {
            "type": "llm-rubric", "value": "Says hi"}}],
    ],
    ids=["agentskills.io", "skill-creator", "bare list", "flat list", "cases", "tests", "routed",
         "one case", "output_evals", "judge", "named", "dimensions", "graded", "unknown list",
         "nested question"],
)  # fmt: skip
def test_a_file_of_each_family_holds_the_same_case(document: Any) -> None:
    (case,) = read(document).cases

    assert (case.id, case.input, case.checks, case.skip) == ("1", "Say hi", SAYS_HI, None)


@pytest.mark.parametrize(
    ("suffix", "text"),
    [
        (".json", '[{"id": 1, "prompt": "Say hi", "assertions": ["Says hi"]}]'),
        (".jsonl", '{"id": 1, "prompt": "Say hi", "assertions": ["Says hi"]}\n'),
        (".yaml", "evals:\n- id: 1\n  prompt: Say hi\n  assertions: [Says hi]\n"),
        (".yml", "- id: 1\n  prompt: Say hi\n  assertions:\n  - Says hi\n"),
    ],
)
def test_a_file_of_each_syntax_holds_the_same_case(suffix: str, text: str) -> None:
    (case,) = read(text, suffix=suffix).cases

    assert (case.id, case.input, case.checks) == ("1", "Say hi", SAYS_HI)


def test_everything_that_must_hold_counts() -> None:
    case = read_one(
        assertions=["Says hi", {"type": "contains", "value": "hi"}, " "],
        expected_behavior="Is polite",
        must_not=["Shout"],
        ground_truth="hi",
        expected_output="A greeting",
    )

    assert case.checks == (
        Judge(statement="Says hi"),
        Contains(text="hi"),
        Judge(statement="Is polite"),
        Judge(statement="The answer does not do this: Shout"),
        Judge(statement="The answer agrees with this reference: hi"),
    )


def test_a_description_of_the_answer_counts_where_nothing_else_does() -> None:
    assert read_one(assertions=[], expected_output="A greeting").checks == (
        Judge(statement="The answer fits this: A greeting"),
    )


def test_a_key_may_say_what_is_looked_for() -> None:
    case = read_one(
        must_contain=["hi", {"regex": "h."}],
        must_not_contain=["yo", {"regex": "y."}],
        expected_output_contains="you",
        required_regex=["y.u"],
        forbidden_regex=["s.r"],
        checks=[{"type": "contains", "value": "there"}],
    )

    assert set(case.checks) == {
        *(Contains(text=text) for text in ("there", "hi", "you")),
        *(Regex(pattern=pattern) for pattern in ("h.", "y.u")),
        NotContains(text="yo"),
        *(NotRegex(pattern=pattern) for pattern in ("y.", "s.r")),
    }


def test_a_key_may_say_how_to_read_its_words() -> None:
    case = read_one(
        must_include=["a greeting"],
        must_not_include=["a name"],
        expected_output_characteristics=["one line"],
        failure_conditions=["shouting"],
        anti_expectations=["Does not shout"],
    )

    assert {check.statement for check in case.checks if isinstance(check, Judge)} == {
        "The answer includes this: a greeting",
        "The answer does not include this: a name",
        "The answer has this: one line",
        "The answer does not do this: shouting",
        "Does not shout",
    }


def test_expected_may_map_checks_to_values() -> None:
    case = read_one(expected={"contains": ["hi", "you"], "greeting": "Says hi"})

    assert case.checks == (
        Contains(text="hi"),
        Contains(text="you"),
        Judge(statement="greeting: Says hi"),
    )


def test_a_case_knows_its_line_and_its_tags() -> None:
    text = '[\n{"prompt": "a", "expected": "b"},\n{"prompt": "c", "tags": ["slow", 1]}]'

    first, second = read(text).cases

    assert (first.line, second.line) == (2, 3)
    assert second.tags == ("slow",)


@pytest.mark.parametrize(
    ("entries", "names"),
    [
        ([{"id": 7}, {"id": "v1.2"}], ["7", "v1.2"]),
        ([{"id": None, "name": "A name"}, {"slug": "s"}], ["A name", "s"]),
        ([{}, {"prompt": "Parse a CSV"}], ["say-hi", "parse-a-csv"]),
        ([{"id": "a::b[0]"}, {"id": "two\nlines"}], ["a-b-0", "two-lines"]),
    ],
)  # fmt: skip
def test_a_case_is_called_what_its_file_calls_it(entries: Any, names: list[str]) -> None:
    cases = read([{"prompt": "Say hi", **entry} for entry in entries]).cases

    assert [case.id for case in cases] == names


def test_names_given_twice_are_with_places_by_what_the_cases_say() -> None:
    entries: list[Any] = [
        {"id": 1, "prompt": "a"},
        {"id": "1", "prompt": "b"},
        {"id": 1, "prompt": "a"},
        {"id": "gate", "prompt": "c"},
    ]

    names = [case.id for case in read(entries).cases]

    assert len(set(names)) == 4
    assert re.fullmatch(r"1-[0-9a-f]{6}", names[0])
    assert names[2] == f"{names[0]}-2"
    assert re.fullmatch(r"gate-[0-9a-f]{6}", names[3])
    assert [case.id for case in read(entries[1::-1]).cases] == names[1::-1]


def test_every_list_whose_entries_all_ask_something_holds_cases() -> None:
    document = {
        "evals": [{"prompt": "a"}],
        "under_pressure": [{"prompt": "b"}, {"query": "c"}],
        "should_not_trigger": ["d"],
        "reviews": [{"prompt": "e"}, {"by": "f"}],
    }

    assert [case.input for case in read(document).cases] == ["a", "b", "c", "d"]


@pytest.mark.parametrize("document", [[], {"evals": []}])
def test_a_file_without_cases_is_a_warning(document: Any) -> None:
    evals = read(document)

    assert evals.cases == ()
    assert [warning.at("f") for warning in evals.warnings] == ["f: contains no cases"]


def test_a_key_that_says_what_must_hold_and_is_not_known_is_told_once() -> None:
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
        ([{"prompt": " "}], 'f:3:13: [0].prompt: must be a text that is not empty, got " "'),
        ({"evals": [{"question": 3}]},
         "f:4:16: evals[0].question: must be a text that is not empty, got 3"),
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


def test_all_defects_of_a_file_are_told_at_once() -> None:
    document = [1, {"prompt": " "}, {"prompt": "a", "assertions": [3, 4]}]

    assert len(problems(document)) == 4


@pytest.mark.parametrize(
    ("odd", "problem"),
    [
        ('{"id": "odd", "prompt": "", "assertions": ["b"]}',
         '[0].prompt: must be a text that is not empty, got ""'),
        ('{"id": "odd", "assertions": ["b"]}', "[0]: no prompt: add 'prompt'"),
        ('{"id": "odd", "prompt": "a", "assertions": [3]}',
         "[0].assertions[0]: must be text or an object, got 3"),
        ('{"id": "odd", "prompt": "a", "prompt": "b"}', "[0].prompt: duplicate key: remove one"),
        ('{"id": "odd", "prompt": "a", "x": NaN}', "[0].x: JSON has no NaN: write a number"),
        ("7", "[0]: must be an object, got 7"),
    ],
)  # fmt: skip
def test_an_odd_entry_costs_itself_and_no_other(odd: str, problem: str) -> None:
    evals = read(f'[{odd},\n{{"id": "even", "prompt": "Say hi", "assertions": ["Says hi"]}}]')

    first, second = evals.cases
    assert first.skip == f"cannot be read: {problem}"
    assert (second.id, second.skip, second.checks) == ("even", None, SAYS_HI)
    assert [each.what for each in evals.warnings] == [
        f"{problem.partition(': ')[2]} (the case is skipped)"
    ]


def test_a_line_that_is_no_json_costs_itself_and_no_other() -> None:
    good = '{"id": "even", "prompt": "Say hi", "assertions": ["Says hi"]}'

    first, second = read(f'{{"id": "odd",\n{good}\n', suffix=".jsonl").cases

    assert first.skip
    assert first.skip.startswith("cannot be read: ")
    assert (second.id, second.skip) == ("even", None)


def test_a_list_that_is_given_twice_is_refused_as_its_first_cases_are_lost() -> None:
    document = '{"evals": [{"prompt": "a"}], "evals": [{"prompt": "b"}]}'

    assert problems(document) == ["f:1:30: evals: duplicate key: remove one"]


def test_text_that_must_be_in_the_answer_may_look_like_a_formula() -> None:
    case = read_one(must_include=["Grade <= 12"], fail=["Shouts"])

    assert case.skip is None
    assert case.checks == (
        Judge(statement="The answer includes this: Grade <= 12"),
        Judge(statement="The answer does not do this: Shouts"),
    )


def test_context_that_is_text_is_asked_before_the_question() -> None:
    case = read_one(context="You are at sea.", assertions=["Says hi"])

    assert (case.input, case.skip) == ("You are at sea.\n\nSay hi", None)


@pytest.mark.parametrize(
    ("context", "key"), [({"files": {"a": "x"}, "cwd": "/tmp"}, "cwd"), (["a"], '["a"]')]
)
def test_context_that_cannot_be_sent_skips_the_case(context: Any, key: str) -> None:
    case = read_one(context=context, assertions=["Says hi"])

    assert case.skip == f"context: {key} is not sent: write it as text, or as 'files'"


def test_what_looks_like_an_expectation_beside_the_cases_is_told() -> None:
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


def test_a_case_that_names_a_skill_is_for_that_skill() -> None:
    document = [
        {"id": "own", "prompt": "a", "assertions": ["b"]},
        {"id": "same", "skill": "CSV", "prompt": "a", "assertions": ["b"]},
        {"id": "other", "target_skills": ["tables:tsv"], "prompt": "a", "assertions": ["b"]},
        {"id": "none", "skill": "xml", "prompt": "a", "assertions": ["b"]},
        {"id": "two", "skills": ["csv", "tsv"], "prompt": "a", "assertions": ["b"]},
        {"id": "odd", "skill": 3, "prompt": "a", "assertions": ["b"]},
    ]

    evals = read(document)

    found = {
        case.id: (owner.folder.name, case.skip)
        for case, owner in zip(evals.cases, evals.owners, strict=True)
    }
    assert found == {
        "own": ("csv", None),
        "same": ("csv", None),
        "other": ("tsv", None),
        "none": ("csv", "skill: no skill near this file is called 'xml'"),
        "two": ("csv", "skills: it needs 2 skills at once, but each skill runs alone"),
        "odd": ("csv", "skill: must be the name of a skill"),
    }


def test_in_a_file_for_several_skills_a_case_without_one_is_skipped() -> None:
    document = [
        {"id": "tsv", "expected_skill": "tsv", "prompt": "a", "assertions": ["b"]},
        {"id": "any", "prompt": "a", "assertions": ["b"]},
        {"id": "none", "prompt": "a", "expected_skill": None},
    ]

    evals = read(document, owner=None)

    assert [owner.folder.name for owner in evals.owners] == ["tsv", "tsv", "tsv"]
    assert [case.skip for case in evals.cases] == [
        None,
        "names no skill: add 'skill'",
        None,
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
        evals = read_evals(text, suffix=suffix, owner=skill("csv", lambda _: {}), find=skill)
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
