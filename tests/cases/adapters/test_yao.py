"""Case files of yao-meta-skill."""

from __future__ import annotations

import json
from typing import Any

from tests.cases.adapters.conftest import CHARTS, QUESTION, Measured


def test_its_three_sets_of_queries_are_measured_as_triggers(measured: Measured) -> None:
    sets = {
        "recommended_threshold": 0.33,
        "negative_patterns": ["summarize"],
        "should_trigger": [{"text": "Which columns of the table are empty?", "family": "columns"}],
        "should_not_trigger": ["What is the weather?"],
        "near_neighbor": [
            {"text": "Draw a chart of the prices", "expected": "charts"},
            {"text": "Which table columns are empty?", "expected": "charts"},
        ],
    }

    outcomes = measured({"skills/csv/evals/trigger_cases.json": json.dumps(sets), **CHARTS})

    # The last query is nearer to csv by its words, but is meant for charts.
    assert outcomes == {
        "which-columns-of-the-table-are-empty trigger": "pass",
        "what-is-the-weather trigger": "pass",
        "draw-a-chart-of-the-prices trigger": "pass",
        "which-table-columns-are-empty trigger": "fail",
    }


def test_required_and_forbidden_texts_of_an_output_case_are_literals(measured: Measured) -> None:
    def case(name: str, *assertions: Any) -> dict[str, Any]:
        outputs = {"baseline_output": "none", "with_skill_output": "price"}
        return {"id": name, "prompt": QUESTION, **outputs, "assertions": assertions}

    texts = {"id": "a", "description": "Names it", "required": ["PRICE"], "forbidden": ["size"]}
    lines = [
        case("has", texts),
        case("lacks", texts | {"forbidden": ["37 missing"]}),
        case("prose", "Names the column"),
    ]

    outcomes = measured({"skills/csv/evals/output/cases.jsonl": "\n".join(map(json.dumps, lines))})

    assert outcomes == {
        "has with_skill": "pass",
        "has without_skill": "fail",
        "lacks with_skill": "fail",
        "lacks without_skill": "fail",
        "prose with_skill": "skip",
        "prose without_skill": "skip",
    }
