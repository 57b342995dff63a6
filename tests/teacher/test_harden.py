"""``pytest-upskill cases --harden``: statements of evals become checks where one is sound."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_upskill.cases.load import load_skills
from pytest_upskill.checks.judge import Judge
from pytest_upskill.checks.text import Regex
from tests.loopback import Received, Reply
from tests.teaching import Depot, code

QUESTION = "Tell me the code of bay 1, please."
STATEMENTS = [
    "The answer names the code of bay 1.",
    "The answer is friendly.",
    "The answer names the depot.",
    "The answer has a code.",
    "The answer says when the code was set.",
]


def check(statement: int, **changes: Any) -> dict[str, Any]:
    return {
        "statement": statement,
        "type": "regex",
        "value": f"(?i){code(1)}",
        "reference": f"It is {code(1)}.",
        "alternatives": [code(1), f"Code: {code(1)}"],
        "wrong": ["It is QX99Z."],
    } | changes


@pytest.fixture
def evals(depot: Depot) -> Path:
    (depot.skill / "skill_meta.json").unlink()
    file = depot.skill / "evals" / "evals.json"
    file.parent.mkdir()
    # What it triggers is another question than what is said.
    case = {"id": 1, "prompt": QUESTION, "expectations": STATEMENTS, "expected_skill": "codes"}
    file.write_text(json.dumps({"skill_name": "codes", "evals": [case]}, indent=3), "utf-8-sig")
    return file


def test_statements_with_a_sound_check_are_replaced_and_the_others_listed_with_the_reason(
    depot: Depot, evals: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    checks = [
        check(1),
        check(3, value="depot"),
        check(4, value="code"),
        check(5, value="(?i)2026", reference="2026", alternatives=["In 2026", "2026."]),
    ]

    def answer(received: Received) -> Reply | str:
        if received.user.startswith("Below are an agent skill"):
            return json.dumps({"checks": checks})
        return f"It is {code(1)}."

    depot.loopback.answer = answer
    before = evals.read_text("utf-8")

    assert depot.run("cases", str(depot.skill), "--harden") == 0
    assert evals.read_text("utf-8") == before
    assert depot.run("cases", str(depot.skill), "--harden", "--apply") == 0

    dropped = depot.decision()["dropped"]
    reasons = {name.rpartition(" ")[2]: reason for name, reason in dropped.items()}
    assert reasons.keys() == {"2", "3", "4", "5"}
    assert reasons["2"] == "the teacher proposes no check by code"
    assert "its own reference answer fails" in reasons["3"]
    assert "the question gives the answer away" in reasons["4"]
    assert "the teacher itself passes only 0 of 2" in reasons["5"]
    assert "1 of 5 statements became checks" in capsys.readouterr().err
    (skill,) = load_skills(evals)
    first, *others = skill.cases[0].checks
    assert first == Regex(pattern=f"(?i){code(1)}")
    assert [each.statement for each in others if isinstance(each, Judge)] == STATEMENTS[1:]
    after = evals.read_text("utf-8")
    check_now = json.loads(after.removeprefix("\ufeff"))["evals"][0]["expectations"][0]
    assert after.replace(json.dumps(check_now), "") == before.replace(json.dumps(STATEMENTS[0]), "")


def test_a_skill_without_an_evals_file_has_nothing_to_harden(
    depot: Depot, capsys: pytest.CaptureFixture[str]
) -> None:
    assert depot.run("cases", str(depot.skill), "--harden") == 4

    assert "--harden needs an evals file" in capsys.readouterr().err


@pytest.mark.parametrize("checks", [None, 3])
def test_a_reply_without_a_list_of_checks_proposes_none(
    depot: Depot, evals: Path, checks: object
) -> None:
    before = evals.read_text("utf-8")
    depot.loopback.answer = lambda _: json.dumps({"checks": checks})

    # No student is asked, and none needs a key.
    student = "--eval-model=anthropic:unused"

    assert depot.run("cases", str(depot.skill), "--harden", "--apply", student) == 1

    assert set(depot.decision()["dropped"].values()) == {"the teacher proposes no check by code"}
    assert evals.read_text("utf-8") == before
