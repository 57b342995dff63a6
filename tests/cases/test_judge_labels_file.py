"""What the file with labels of a judge's answers may say, and which statements it excludes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_upskill.cases.load import SkillError, load_skills
from pytest_upskill.cases.skill import Case
from pytest_upskill.checks.judge import Judge
from tests.conftest import WriteSkill

KIND = "The answer is kind."
EMPTY: dict[str, Any] = {
    "format": 1,
    "case_file": "skill_meta.json",
    "drawn": "2026-11-22",
    "judge": "openai:judge",
    "served": [],
    "prompt": "0",
    "models": {},
    "cases": {"case-0": "0"},
    "answers": [
        {"id": 1, "case": "case-0", "model": "m", "question": "?", "text": [], "labels": []}
    ],
    "cells": {},
}
KEY = {"1": {"arm": "with", "judged": True, "holds": [], "prompt": "0", "skill": "0"}}


def labelled(write_skill: WriteSkill, **changes: Any) -> tuple[Case, ...]:
    """Read two cases, the first of two statements, beside a file with these labels."""
    statements = [KIND, "The tests were run."], [KIND]
    folder = write_skill(
        *(
            {"id": f"case-{number}", "input": f"Be kind ({number})", "expected": {"judge": judge}}
            for number, judge in enumerate(statements)
        )
    )
    key = changes.pop("key", KEY)
    Path(folder, "judge_key.json").write_text(json.dumps(key), "utf-8")
    labels = json.dumps(EMPTY | changes, indent=1)
    Path(folder, "judge_labels.json").write_text(labels, "utf-8")
    return load_skills(folder / "skill_meta.json")[0].cases


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        ({"answers": [{"id": "one"}]}, 'answers[0].id: must be a whole number, got "one"'),
        ({"statments": {}}, "statments: unknown key (did you mean 'statements'?)"),
        ({"statements": {"case-0": "agent"}}, "statements.case-0: must be a case's id, a slash"),
        ({"statements": {"case-0/9": "agent"}}, "there is no statement 9: the case has 2"),
        ({"statements": {"nobody/1": "agent"}}, "there is no case 'nobody'"),
        ({"statements": {"case-0/1": "silly"}}, "must be 'agent' or 'vacuous', got \"silly\""),
        ({"key": {}}, "judge_key.json has no entry 1: restore it from git"),
        ({"key": {"1": KEY["1"] | {"arm": "both"}}}, "1.arm: "),
    ],
)
def test_a_mistake_in_the_labels_file_is_shown_with_its_place(
    write_skill: WriteSkill, broken: dict[str, Any], message: str
) -> None:
    with pytest.raises(SkillError) as caught:
        labelled(write_skill, **broken)

    (line,) = (each for each in str(caught.value).splitlines() if message in each)
    assert "judge_labels.json:" in line


def test_statements_excluded_in_the_labels_file_are_not_judged(write_skill: WriteSkill) -> None:
    marks = {"case-0/2": "agent", "case-1/1": "vacuous"}

    first, second = labelled(write_skill, statements=marks)

    assert first.checks == (Judge(statement=KIND),)
    assert second.skip is not None
    assert second.skip.endswith("every check is marked as agent or vacuous")
