"""Suites of caliper and tessl."""

from __future__ import annotations

from tests.cases.adapters.conftest import Measured

CALIPER = """\
skills: [..]
tasks:
  - name: columns
    prompt: Which columns of the table are empty?
    activates: [csv]
  - {name: weather, prompt: What is the weather?, activates: []}
  - name: judged
    prompt: Which column has missing values?
    expect: Names the column
    assert: |
      assert "price" in output
"""


def test_tasks_of_caliper_are_triggers_or_for_a_judge(measured: Measured) -> None:
    assert measured({"skills/csv/evals/csv.eval.yaml": CALIPER}) == {
        "columns trigger": "pass",
        "weather trigger": "pass",
        "judged with_skill": "skip",
        "judged without_skill": "skip",
    }


def test_the_checklist_of_a_scenario_of_tessl_is_for_a_judge(measured: Measured) -> None:
    criteria = '{"checklist": [{"name": "column", "description": "Names it", "max_score": 10}]}'
    scenario = {"task.md": "Which column has missing values?\n", "criteria.json": criteria}

    outcomes = measured({f"skills/csv/evals/columns/{name}": scenario[name] for name in scenario})

    assert outcomes == {"columns with_skill": "skip", "columns without_skill": "skip"}
