"""Suites of caliper, skill-up and tessl."""

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


UP = {
    "eval.yaml": """\
schema_version: v1alpha1
engine: {name: claude_code}
cases:
  files: [evals/cases/counts.yaml]
  defaults: {expect: {must_not_contain: [quantity], exit_code: 0}}
""",
    "cases/counts.yaml": """\
title: Counts
input: {prompt: Which column has missing values?}
constraints: {max_turns: 3}
expect: {must_contain: [price]}
judge:
  type: rule_based
  success:
    - output_contains: {all: [price, "37"], any: [PRICE, missing]}
    - output_matches: {any: ['(?m)^nothing$', '(?i)COLUMN price\\b']}
    - exit_code: 0
  failure:
    - output_contains: {any: [no column, weather]}
""",
    "cases/case.yaml": "input: {prompt: Which column has missing values?}\n"
    "expect: {must_contain: [PRICE]}\n",
    "cases/folder.yaml": "input: {prompt: Write a report}\n"
    "context: {files: {a.csv: 'a,b'}}\nexpect: {files_exist: [report.md]}\n",
}


def test_cases_of_skill_up_have_its_rules_and_the_defaults_of_their_suite(
    measured: Measured,
) -> None:
    assert measured({f"skills/csv/evals/{name}": text for name, text in UP.items()}) == {
        "counts with_skill": "pass",
        "counts without_skill": "fail",
        "case with_skill": "fail",
        "case without_skill": "fail",
        "folder with_skill": "skip",
        "folder without_skill": "skip",
    }


def test_the_checklist_of_a_scenario_of_tessl_is_for_a_judge(measured: Measured) -> None:
    criteria = '{"checklist": [{"name": "column", "description": "Names it", "max_score": 10}]}'
    scenario = {"task.md": "Which column has missing values?\n", "criteria.json": criteria}

    outcomes = measured({f"skills/csv/evals/columns/{name}": scenario[name] for name in scenario})

    assert outcomes == {"columns with_skill": "skip", "columns without_skill": "skip"}
