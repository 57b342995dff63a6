from __future__ import annotations

from typing import Any

import pytest

from tests.evals import read, read_one

CHOSEN = "trigger case: the skill is always in context, so nothing chooses it"


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ({"should_trigger": False}, f"should_trigger: {CHOSEN}"),
        ({"expected_skill": None}, f"expected_skill is none: {CHOSEN}"),
        ({"expected_skill": "tsv"}, f"expected_skill is tsv: {CHOSEN}"),
        ({"expected_script": "scripts/a.py"}, "expected_script: a single answer runs no scripts"),
        ({"expected_references": ["a.md"]}, "expected_references: a single answer opens no files"),
        ({"expected_files": ["a.csv"]}, "expected_files: a single answer leaves no files"),
        ({"deterministic_assertions": [{"cmd": ["a"]}]},
         "deterministic_assertions: a single answer leaves nothing for commands to look at"),
        ({"tool_assertions": [{"type": "tool-called"}]},
         "tool_assertions: a single answer calls no tools"),
        ({"expected_activation": False}, f"expected_activation: {CHOSEN}"),
        ({"expected_activation": "tsv"}, f"expected_activation is tsv: {CHOSEN}"),
        ({"cmd": "python a.py"}, "cmd: a single answer runs no scripts"),
        ({"expected_tool": "search"}, "expected_tool: a single answer calls no tools"),
        ({"turns": ["Say hi", "Again"]}, "turns: a single answer has no further turns"),
        ({"workspace": "evals/repo"}, "workspace: a single answer has no workspace"),
        ({"should_trigger": "tsv"}, f"should_trigger is tsv: {CHOSEN}"),
        ({"should_trigger": "no"}, f"should_trigger: {CHOSEN}"),
        ({"expect_skill": "tsv"}, f"expect_skill is tsv: {CHOSEN}"),
        ({"expected_triggers": ["skill: tsv"]}, f"expected_triggers is tsv: {CHOSEN}"),
        ({"skills_expected_to_activate": ["tsv", "xml"]},
         f"skills_expected_to_activate is tsv, xml: {CHOSEN}"),
        ({"expect_activation": False}, f"expect_activation: {CHOSEN}"),
        ({"forbidden_skills": ["csv"]}, f"forbidden_skills: {CHOSEN}"),
        ({"must_not_activate": ["csv"]}, f"must_not_activate: {CHOSEN}"),
        ({"prompt": ["Say hi", "Again"]}, "prompt: a single answer has no further turns"),
        ({"prompt": {"command": "make"}}, "no prompt: add 'prompt'"),
        ({"prompt": {"task": "Say hi", "setup": "make"}},
         "setup: a single answer leaves nothing for commands to look at"),
    ],
)  # fmt: skip
def test_a_case_that_needs_an_agent_is_skipped_and_says_why(entry: Any, reason: str) -> None:
    assert read_one(assertions=["Says hi"], **entry).skip == reason


@pytest.mark.parametrize(
    "entry",
    [
        {"should_trigger": True},
        {"expected_skill": "csv"},
        {"expected_activation": True, "must_not_activate": ["tsv"]},
        {"expected_activation": "csv"},
        {"should_trigger": "csv"},
        {"expected_skill": "tables:CSV"},
        {"skills_expected_to_activate": ["tsv", "csv"]},
        {"expected_skill": "tsv", "acceptable_skills": ["csv"]},
        {"expected_skill": "csv", "forbidden_skills": ["tsv"]},
        {"expected_script": None, "tools": [], "environment": {}, "setup": ""},
    ],
)
def test_what_holds_by_itself_or_asks_for_nothing_skips_nothing(entry: Any) -> None:
    assert read_one(assertions=["Says hi"], **entry).skip is None


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ({}, "nothing to check: add 'assertions'"),
        ({"assertions": [], "expected_output": " "}, "nothing to check: add 'assertions'"),
        ({"should_trigger": True}, f"should_trigger: {CHOSEN}"),
        ({"expected_skill": "csv"}, f"expected_skill: {CHOSEN}"),
        (
            {"expected_activation": True, "expected_behavior": True},
            f"expected_activation: {CHOSEN}",
        ),
    ],
)
def test_a_case_with_nothing_to_check_is_skipped(entry: Any, reason: str) -> None:
    assert read_one(**entry).skip == reason


@pytest.mark.parametrize(
    "document",
    [
        [{"query": "Parse", "should_trigger": True}, {"query": "Sing", "should_trigger": False}],
        {"should_trigger": ["Parse"], "should_not_trigger": ["Sing"]},
        {"trigger_evals": {"should_trigger": ["Parse"], "should_not_trigger": ["Sing"]}},
        {"positive_triggers": ["Parse"], "negative_triggers": ["Sing"]},
        {"trigger_evaluation": {"should_trigger": ["Parse"], "should_not_trigger": ["Sing"]}},
        {"csv": {"should_trigger": ["Parse"]}, "global_should_not_trigger": ["Sing"]},
        {
            "queries": [
                {"query": "Parse", "should_trigger": "csv"},
                {"query": "Sing", "should_trigger": None},
            ]
        },
        {"positive": [{"id": 1, "prompt": "Parse", "expected": "trigger"}], "negative": ["Sing"]},
        {
            "evaluations": [
                {"prompt": "Parse", "should_trigger": True},
                {"prompt": "Sing", "should_trigger": False},
            ]
        },
    ],
)
def test_a_set_of_triggers_is_skipped_question_by_question(document: Any) -> None:
    cases = read(document).cases

    assert [case.input for case in cases] == ["Parse", "Sing"]
    assert {case.skip for case in cases} == {f"should_trigger: {CHOSEN}"}


def test_nothing_may_be_asked_where_the_skill_is_not_wanted() -> None:
    (case,) = read([{"id": "none", "prompt": "", "should_trigger": False}]).cases

    assert (case.id, case.skip) == ("none", f"should_trigger: {CHOSEN}")


def test_a_file_in_which_nothing_asks_is_for_another_tool() -> None:
    cases = read([{"id": "a", "args": "--all", "expect": "hi"}, {"id": "b", "must": ["hi"]}]).cases

    assert [case.skip for case in cases] == ["no prompt: add 'prompt'"] * 2


def test_a_case_that_neither_asks_nor_checks_is_skipped() -> None:
    later: dict[str, Any] = {"id": "later", "prompt": None, "assertions": []}

    _, case = read([{"prompt": "a", "assertions": ["b"]}, later]).cases

    assert case.skip == "nothing to check: add 'assertions'"


def test_a_conversation_needs_no_question_of_its_own() -> None:
    (case,) = read([{"id": "talk", "query_flow": ["Hi", "Bye"], "assertions": ["a"]}]).cases

    assert (case.id, case.skip) == ("talk", "query_flow: a single answer has no further turns")
