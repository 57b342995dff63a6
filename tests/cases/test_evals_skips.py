"""Cases of evals files that cannot run are skipped with the reason."""

from __future__ import annotations

from typing import Any

import pytest

from tests.evals import read, read_one


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ({"deterministic_assertions": [{"cmd": ["a"]}]},
         "deterministic_assertions: its commands are not run"),
        ({"cmd": "python a.py"}, "cmd: it tests a script, not an answer"),
        ({"turns": ["Say hi", "Again"]}, "turns: a single answer has no further turns"),
        ({"workspace": {"image": "x", "ports": []}}, "workspace: its files cannot be read"),
        ({"expected_activation": "It loads the skill and asks for the file"},
         ("expected_activation: 'It loads the skill and asks for the file' is not the name of a "
          "skill: write true, false or a name")),
        ({"prompt": ["Say hi", "Again"]}, "prompt: a single answer has no further turns"),
        ({"prompt": {"command": "make"}}, "no prompt: add 'prompt', which must not be empty"),
        ({"prompt": ""}, "no prompt: add 'prompt', which must not be empty"),
        ({"prompt": "Sort {{.Vars.rows}}"}, "prompt: its variables are not filled in"),
        ({"skip": True}, "skip: the file disables it"),
        ({"disabled": "until May"}, "disabled: the file disables it"),
        ({"enabled": False}, "enabled: the file disables it"),
    ],
)  # fmt: skip
def test_a_case_that_needs_an_agent_is_skipped_and_says_why(entry: Any, reason: str) -> None:
    assert read_one(assertions=["Says hi"], **entry).skip == reason


def test_keys_that_ask_for_nothing_skip_nothing() -> None:
    asks_nothing: dict[str, Any] = {
        "expected_script": None,
        "tools": [],
        "environment": {},
        "setup": "",
        "skip": False,
        "enabled": True,
    }

    assert read_one(assertions=["Says hi"], **asks_nothing).skip is None


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ({}, "nothing to check: add assertions"),
        (
            {"assertions": [{"type": "contains", "value": "a", "should_match": False}]},
            "assertions: contains: should_match is not known",
        ),
        (
            {"graders": [{"type": "llm_rubric", "rubric": "q.md"}]},
            "graders: llm_rubric: rubric: the file q.md is not read: write its text here",
        ),
        (
            {"assertions": [], "expected_output": " "},
            "nothing to check: add assertions",
        ),
    ],
)
def test_a_case_with_nothing_to_check_is_skipped(entry: Any, reason: str) -> None:
    assert read_one(**entry).skip == reason


def test_a_file_in_which_nothing_asks_is_for_another_tool() -> None:
    cases = read([{"id": "a", "args": "--all", "expect": "hi"}, {"id": "b", "must": ["hi"]}]).cases

    assert [case.skip for case in cases] == ["no prompt: add 'prompt', which must not be empty"] * 2


def test_a_case_that_neither_asks_nor_checks_is_skipped() -> None:
    later: dict[str, Any] = {"id": "later", "prompt": None, "assertions": []}

    _, case = read([{"prompt": "a", "assertions": ["b"]}, later]).cases

    assert case.skip == "nothing to check: add assertions"


def test_a_conversation_needs_no_separate_question() -> None:
    (case,) = read([{"id": "talk", "query_flow": ["Hi", "Bye"], "assertions": ["a"]}]).cases

    assert (case.id, case.skip) == ("talk", "query_flow: a single answer has no further turns")


def test_a_suite_of_nothing_but_conversations_is_shown_with_the_reason() -> None:
    talk = {"name": "talk", "turns": ["Hi", "Bye"], "rubric": ["Says bye"]}

    (case,) = read({"stimuli": [talk]}, suffix=".yaml").cases

    assert (case.id, case.skip) == ("talk", "turns: a single answer has no further turns")
