"""Cases of evals files: the keys of other tools, and what they mean."""

from __future__ import annotations

import re
from typing import Any

import pytest

from pytest_upskill.checks.judge import Judge
from pytest_upskill.checks.text import Contains, NotContains, NotRegex, Regex
from tests.evals import SAYS_HI, read, read_one


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
        {"evals": [{"id": 1, "prompt": "Say hi", "fixture": {"status": "none"}, "execution": {
            "expected_output": "A greeting", "assertions": ["Says hi"]}}]},
    ],
    ids=["agentskills.io", "skill-creator", "bare list", "flat list", "cases", "tests", "routed",
         "one case", "output_evals", "judge", "named", "dimensions", "graded", "unknown list",
         "nested question", "execution"],
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


def test_what_is_said_twice_is_one_check() -> None:
    case = read_one(assertions=["Says hi", "contains:hi"], expectations=["contains:hi", "Says hi"])

    assert case.checks == (*SAYS_HI, Contains(text="hi"))


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
        *(Regex(pattern=pattern) for pattern in ("(?i)h.", "y.u")),
        NotContains(text="yo"),
        *(NotRegex(pattern=pattern) for pattern in ("(?i)y.", "s.r")),
    }


def test_alternatives_are_a_pattern_in_every_key() -> None:
    case = read_one(
        must_have=["refund|money back", r"fee\|charge"],
        must_not=["sorry|apolog"],
        assertions=["Returns str | None", "| a | b |"],
    )

    assert set(case.checks) == {
        Regex(pattern="(?i)refund|money back"),
        Regex(pattern="(?i)fee|charge"),
        NotRegex(pattern="(?i)sorry|apolog"),
        *(Judge(statement=text) for text in ("Returns str | None", "| a | b |")),
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


def test_graders_of_waza_and_skillgrade_are_read_in_any_list_of_tasks() -> None:
    pattern = {"type": "text", "config": {"regex_match": ["h."]}}
    script = {"type": "deterministic", "run": "make"}
    rubric = {"type": "llm_rubric", "rubric": "Is kind"}
    tasks = [
        {"id": "a", "prompt": "Say hi", "validators": [pattern]},
        {"id": "b", "instruction": "Say hi", "graders": [script, rubric]},
        {"id": "c", "instruction": "Say hi", "graders": [script]},
        {"id": "d", "instruction": "Say hi", "graders": ["make"]},
    ]

    cases = read({"tasks": tasks}).cases

    assert [case.checks for case in cases] == [
        (Regex(pattern="h."),),
        (Judge(statement="The answer passes this rubric: Is kind"),),
        (),
        (),
    ]
    assert [case.skip for case in cases] == [
        *(None, None),
        "graders: deterministic: no check here can decide it",
        "graders: its commands are not run",
    ]


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


def test_names_given_twice_are_told_apart_by_the_text_of_their_cases() -> None:
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
        "two": ("csv", "skill: it needs 2 skills at once, but each skill runs alone"),
        "odd": ("csv", "cannot be read: [5].skill: must be the name of a skill"),
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
        "does not say which skill it tests: add 'skill' (Vally: 'tags.skill')",
        None,
    ]
