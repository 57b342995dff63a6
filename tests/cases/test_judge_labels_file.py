"""What the file with labels of a judge's answers may say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_upskill.cases.load import SkillError, load_skills
from pytest_upskill.cases.skill import Case
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
        ({"statements": {}}, "statements: unknown key"),
        ({"key": {}}, "does not fit judge_key.json or 'cases': restore both"),
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
