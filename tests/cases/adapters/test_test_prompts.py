"""``test-prompts.json``, and sets of queries for several skills."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.cases.adapters.conftest import CHARTS, Measured

COLUMNS = "Which columns of the table are empty?"
CHART = "Draw a chart of the prices"


@pytest.mark.parametrize(
    "value",
    [
        {
            "prompts": [{"id": "fires", "prompt": COLUMNS, "expected_skill": "csv"}],
            "anti_prompts": [{"id": "quiet", "prompt": CHART, "reason": "another's"}],
        },
        {
            "skill": "csv",
            "test_cases": [
                {"id": "fires", "type": "should_trigger", "prompt": COLUMNS},
                {"id": "quiet", "type": "should_not_trigger", "prompt": CHART},
            ],
        },
        [
            {"id": "fires", "type": "trigger", "prompt": COLUMNS},
            {"id": "quiet", "type": "distractor", "prompt": CHART, "expect": "不应激活本 skill。"},
        ],
    ],
)
def test_kinds_of_prompts_say_whether_the_skill_should_be_chosen(
    value: Any, measured: Measured
) -> None:
    outcomes = measured({"skills/csv/test-prompts.json": json.dumps(value)})

    assert outcomes == {"fires trigger": "pass", "quiet trigger": "pass"}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        (
            "evals/routing-cases.json",
            [
                {"id": "fires", "prompt": COLUMNS, "expectedSkills": ["csv"], "expected_refs": []},
                {"id": "quiet", "prompt": CHART, "expectedSkills": ["charts"],
                 "forbidden_refs": ["a.md"]},
            ],
        ),
        (
            "evals/trigger_cases.json",
            [{"skill": "csv", "queries": [COLUMNS]}, {"skill": "charts", "queries": [CHART]}],
        ),
    ],
)  # fmt: skip
def test_queries_for_several_skills_are_triggers_of_each(
    name: str, value: Any, measured: Measured
) -> None:
    outcomes = measured({name: json.dumps(value), **CHARTS})

    assert [*outcomes.values()] == ["pass", "pass"]


def test_cases_in_a_file_named_after_a_skill_are_for_it(measured: Measured) -> None:
    case = [{"id": 1, "prompt": "Which column has missing values?", "must_contain": "price"}]

    outcomes = measured({"evals/cases/csv.json": json.dumps(case), **CHARTS})

    assert outcomes == {"1 with_skill": "pass", "1 without_skill": "fail"}


def test_properties_of_an_answer_are_for_a_judge(measured: Measured) -> None:
    expect = {"slide_count": 6, "theme": "tokyo-night", "has_notes": True, "max_tokens": 500}
    case = [{"id": "slides", "prompt": "Make slides", "expect": expect}]

    outcomes = measured({"skills/csv/test-prompts.json": json.dumps(case)})

    assert outcomes == {"slides with_skill": "skip", "slides without_skill": "skip"}
