"""Statements about an agent's work or the choice of the skill are not graded in silence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_upskill.cases.load import SkillError, load_skills
from pytest_upskill.cases.skill import Trigger
from tests.conftest import QUESTION, Run, WriteSkill
from tests.loopback import Loopback, Received, Reply

KIND = "Is kind."
TESTS = "All unit tests pass."
STAGED = "The changed files are staged."


@pytest.fixture
def judged(loopback: Loopback) -> tuple[str, ...]:
    """Answer every question, and hold every statement; return the arguments that do so."""

    def reply(received: Received) -> Reply:
        if received.body["model"] != "judge":
            return Reply(text="It is 37 attempts.")
        count = received.user.partition("Check these statements")[2].count("\n")
        verdict = {"holds": True, "quote": "37 attempts", "reason": "r"}
        verdicts = [{"statement": number, **verdict} for number in range(1, count + 1)]
        return Reply(text=json.dumps({"verdicts": verdicts}))

    loopback.answer = reply
    url = loopback.openai_url
    return ("skills", f"--upskill-models=m=model@{url}", f"--upskill-judge=judge@{url}")


@pytest.fixture(params=["skill_meta.json", "evals.json"])
def write(request: pytest.FixtureRequest, write_skill: WriteSkill) -> Any:
    """Write a skill with one case of statements, in our format and in that of others."""

    def write(*statements: str, **more: Any) -> Path:
        folder = write_skill({"id": "a", "input": QUESTION, "expected": {"judge": list(statements)},
                              **more})  # fmt: skip
        if request.param == "evals.json":
            (folder / "skill_meta.json").unlink()
            case = {"id": "a", "prompt": QUESTION, "expectations": list(statements), **more}
            (folder / "evals.json").write_text(json.dumps({"evals": [case]}), "utf-8")
        file: Path = folder / request.param
        return file

    return write


def test_a_marked_statement_is_not_judged(
    run_once: Run, write: Any, judged: tuple[str, ...], loopback: Loopback
) -> None:
    write(TESTS, KIND, statements={"1": "agent"})

    result = run_once(*judged)

    result.assert_outcomes(passed=3)
    asked = [received.user for received in loopback.requests if received.body["model"] == "judge"]
    assert asked
    assert not any(TESTS in user for user in asked)


def test_a_case_without_other_checks_than_marked_ones_is_skipped(
    run_once: Run, write: Any, judged: tuple[str, ...], loopback: Loopback
) -> None:
    write(TESTS, KIND, statements={"1": "agent", "2": "vacuous"})

    result = run_once(*judged)

    result.assert_outcomes(skipped=2)
    assert loopback.requests == []
    result.stdout.fnmatch_lines(["*statements: every check is marked as agent or vacuous"])


@pytest.mark.parametrize("marks", [{"3": "agent"}, {"1": "agnt"}, {"one": "agent"}])
def test_a_mark_that_means_nothing_is_refused_at_its_place(
    write: Any, marks: dict[str, str]
) -> None:
    file = write(KIND, TESTS, statements=marks)

    with pytest.raises(SkillError, match=r":1:\d+: (cases|evals)\[0\]\.statements"):
        load_skills(file)


def eval_case(write_skill: WriteSkill, *statements: str) -> Any:
    folder = write_skill()
    case = {"prompt": QUESTION, "expectations": list(statements)}
    (folder / "evals.json").write_text(json.dumps([case]), "utf-8")
    return load_skills(folder / "evals.json")[0].cases[0]


@pytest.mark.parametrize(
    "statement",
    [
        "The skill should trigger",
        "Skill is activated automatically.",
        "The billing skill should be used for this query",
    ],
)
def test_prose_that_this_skill_is_chosen_is_no_statement_about_the_answer(
    write_skill: WriteSkill, statement: str
) -> None:
    case = eval_case(write_skill, KIND, statement, TESTS)

    assert [check.statement for check in case.judge_checks] == [KIND, TESTS]
    assert (case.skip, case.is_answered) == (None, True)
    assert case.trigger == Trigger(should=True)


@pytest.mark.parametrize(
    "statement",
    [
        "The skill should not be used",
        "Does not trigger the skill",
        "The billing skill is NOT triggered",
        "billing is not triggered",
        "Should NOT activate the skill - this is about ships",
    ],
)
def test_prose_that_this_skill_is_not_chosen_leaves_only_the_query(
    write_skill: WriteSkill, statement: str
) -> None:
    case = eval_case(write_skill, KIND, statement)

    assert case.trigger == Trigger(should=False)
    assert not case.is_answered


def test_prose_that_another_skill_is_not_chosen_says_nothing_about_this_one(
    write_skill: WriteSkill,
) -> None:
    case = eval_case(write_skill, KIND, "The shipping skill is NOT loaded")

    assert ([check.statement for check in case.judge_checks], case.trigger) == ([KIND], None)


def test_a_skill_that_does_not_exist_cannot_be_expected(write_skill: WriteSkill) -> None:
    case = eval_case(write_skill, KIND, "The freight skill is loaded")

    assert case.skip == "no skill near this file is called 'freight'"


def test_a_sentence_about_a_thing_that_is_no_skill_is_a_statement(write_skill: WriteSkill) -> None:
    case = eval_case(write_skill, KIND, "sudo is not used")

    assert [check.statement for check in case.judge_checks] == [KIND, "sudo is not used"]
