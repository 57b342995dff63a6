"""What is wrong with a skill and its cases, found without a model."""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest

from pytest_upskill.cases.lint import findings
from pytest_upskill.cases.load import load_skills
from pytest_upskill.cases.skill import Skill
from tests.conftest import QUESTION, Run, WriteSkill


def case(name: str = "a", text: str = QUESTION, **expected: Any) -> dict[str, Any]:
    return {"id": name, "input": text, "expected": expected or {"contains": "37"}}


def read(folder: Path) -> Skill:
    (skill,) = load_skills(folder / "skill_meta.json")
    return skill


@pytest.mark.parametrize(
    ("cases", "finding"),
    [
        ([case(contains="billing")],
         "a: contains 'billing': satisfied by the question itself*"),
        ([case(contains_any=["9", "retry"])], "a: contains_any '9', 'retry': satisfied by *"),
        ([case(regex="(?i)BUDGET")], "a: regex '(?i)BUDGET': satisfied by the question itself*"),
        ([case(regex="x*")], "a: regex 'x[*]' can never fail: it passes even for an empty answer"),
        ([case(not_regex="^")], "a: not_regex '^' can never pass: *"),
        ([case(not_contains=" ")], "a: not_contains ' ' can hardly ever pass: it forbids spaces"),
        ([case(contains="a 37 b", not_contains="37")],
         "a: contains 'a 37 b' and not_contains '37' can never both pass"),
        ([case(run={"language": "python", "code": "x = 1\ndef check(): assert x"})],
         "a: run can never be decided: nothing runs: it has no test function and no statement*"),
        ([case(), case("b")], "b: asks the same as a in line 1: give one case both checks, *"),
    ],
    ids=lambda value: str(value)[-40:],
)  # fmt: skip
def test_checks_that_cannot_tell_anything_are_reported(
    write_skill: WriteSkill, cases: list[dict[str, Any]], finding: str
) -> None:
    (found,) = findings(read(write_skill(*cases)))

    assert found.line == 1
    assert fnmatchcase(f"{found.where}: {found.what}", finding)


@pytest.mark.parametrize(
    "expected",
    [
        {"contains": "37", "not_contains": "38"},
        {"regex": r"\d+"},
        {
            "run": {
                "language": "python",
                "code": '@mark.usefixtures("db")\ndef test_it(): assert f()',
            }
        },
        {"contains": "standing in the file"},
        {"run": {"language": "python", "code": "def test_it():\n    assert f()"}},
        {"run": {"language": "python", "code": "f()"}},
        {"json_schema": {"type": "object"}, "judge": "It is kind."},
    ],
)
def test_checks_that_can_tell_something_are_not_reported(
    write_skill: WriteSkill, expected: dict[str, Any]
) -> None:
    files = {"notes.md": "It is standing in the file."}

    assert not findings(read(write_skill(case(**expected) | {"context": {"files": files}})))


def test_a_run_warns_of_a_check_that_can_never_fail(run_once: Run, write_skill: WriteSkill) -> None:
    write_skill(case(regex="(37)?"))

    result = run_once("--upskill-models", "offline", "skills", "-W", "default")

    result.stdout.fnmatch_lines(
        ["*skill_meta.json:*: a: regex '(37)?' can never fail: it passes even for an empty answer"]
    )
