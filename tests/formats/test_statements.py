"""Statements about an agent's work or the choice of the skill are not graded in silence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_upskill.checks import Judge
from pytest_upskill.formats.load import SkillError, load_skills
from pytest_upskill.formats.skill import Case, Trigger
from pytest_upskill.formats.suspect_statements import candidates, needs_agent
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


@pytest.mark.parametrize(
    "statement",
    [
        TESTS,
        STAGED,
        "Running build.sh exits zero",
        "Spawns five parallel subagents",
        "The agent ran scripts/audit.sh on the host",
        "Runs `git diff` to determine the scope",
        "Creates a report.md file with the findings",
        "out/summary.csv exists",
        "Uses the Read tool",
        "Opens a pull request",
        "The answer fits this: Runs generate_report.py on the project",
        "Ran the bundled collect.py instead of counting by hand",
        "The agent did not run or recommend drop_caches.sh",
    ],
)
def test_a_statement_about_the_work_of_an_agent_is_recognised(statement: str) -> None:
    assert needs_agent(statement)


@pytest.mark.parametrize(
    "statement",
    [
        KIND,
        "The answer explains that all tests pass only with pytest 9.",
        "Recommends that the changed files are staged first.",
        "Mentions which file is created by the build.",
        "The function returns 0 for an empty list.",
        "Uses the active voice.",
        "The agent executed discover_assets.py or explained how to run it",
        "The agent fetched or clearly referenced the installation page",
    ],
)
def test_a_statement_about_the_answer_is_left_alone(statement: str) -> None:
    assert not needs_agent(statement)


@pytest.mark.parametrize(
    ("statement", "vacuous"),
    [
        ("The answer is helpful and clear.", True),
        ("The response addresses the user's request", True),
        ("Provides a helpful response.", True),
        ("TODO", True),
        ("The answer is correct: it names 37 attempts.", False),
        ("The answer is clear about the limit of 37.", False),
        ("Answers the question in one sentence.", False),
        (KIND, False),
    ],
)
def test_statements_without_a_criterion_are_candidates(statement: str, vacuous: bool) -> None:
    case = Case(id="a", input="?", checks=(Judge(statement=statement),))

    assert [each.mark for each in candidates(case)] == ["vacuous"] * vacuous


def test_statements_that_seem_to_need_an_agent_are_graded_and_counted_by_skill(
    run_once: Run, write_skill: WriteSkill, judged: tuple[str, ...]
) -> None:
    write_skill({"id": "a", "input": QUESTION, "expected": {"judge": [KIND, TESTS, STAGED]}})
    write_skill({"id": "a", "input": QUESTION, "expected": {"judge": [TESTS]}}, name="shipping")

    result = run_once(*judged)

    line = (
        "judge: 3 statements seem to be about an agent's work, which a single answer "
        "cannot show "
        "(billing 2, shipping 1): --upskill-lint lists them and shows how to exclude them"
    )
    assert line in result.outlines


def test_lint_lists_statements_with_the_key_that_excludes_them(run_once: Run, write: Any) -> None:
    file = write(KIND, TESTS, STAGED, statements={"2": "agent"})

    result = run_once("--upskill-lint", "skills", "-W", "default")

    result.assert_outcomes(passed=1, warnings=1)
    told = [line.strip() for line in result.outlines if line.strip().startswith("line 1, a: ")]
    assert told == [
        (
            f'line 1, a: "statements": {{"3": "agent"}} for \'{STAGED}\': '
            "'files are staged' is an agent's work, which an answer cannot show"
        )
    ]
    result.stdout.fnmatch_lines([f"*skills/billing/{file.name}:1: *if that is true, this key *"])


def test_a_marked_statement_is_not_judged(
    run_once: Run, write: Any, judged: tuple[str, ...], loopback: Loopback
) -> None:
    write(TESTS, KIND, statements={"1": "agent"})

    result = run_once(*judged)

    result.assert_outcomes(passed=3)
    asked = [received.user for received in loopback.requests if received.body["model"] == "judge"]
    assert asked
    assert not any(TESTS in user for user in asked)
    result.stdout.no_fnmatch_line("judge: *seem*")


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
        "The shipping skill is NOT loaded",
    ],
)
def test_prose_that_this_skill_is_chosen_is_no_statement_about_the_answer(
    write_skill: WriteSkill, statement: str
) -> None:
    case = eval_case(write_skill, KIND, statement, TESTS)

    assert [(check.number, check.statement) for check in case.checks] == [(1, KIND), (3, TESTS)]
    assert (case.skip, case.is_answered) == (None, True)
    assert case.trigger == Trigger(should=True)


@pytest.mark.parametrize(
    "statement",
    ["The skill should not be used", "Does not trigger the skill", "The shipping skill is loaded"],
)
def test_prose_that_this_skill_is_not_chosen_leaves_only_the_query(
    write_skill: WriteSkill, statement: str
) -> None:
    case = eval_case(write_skill, KIND, statement)

    assert case.trigger == Trigger(should=False)
    assert not case.is_answered
