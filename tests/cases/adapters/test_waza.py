"""Suites of waza: an ``eval.yaml`` and its tasks."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_upskill.cases.load import load_skills
from pytest_upskill.cases.skill import Case
from pytest_upskill.checks.text import Contains, Regex
from tests.cases.adapters.conftest import CHARTS, SKILL, Measured

SUITE = """\
name: csv-eval
skill: csv
config: {trials_per_task: 3, executor: copilot-sdk}
graders:
  - {type: code, name: not_empty, config: {assertions: ["len(output) > 20"]}}
tasks: ["tasks/*.yaml"]
"""
COUNTS = """\
id: counts-001
name: Counts the missing values
tags: [basic]
inputs:
  prompt: Which column has missing values?
expected:
  should_trigger: true
  outcomes: [{type: task_completed}]
  output_contains: [PRICE]
graders:
  - type: text
    name: number
    config: {regex_match: ["(?i)price|cost", '\\b37\\b']}
  - type: behavior
    name: few_calls
    config: {max_tool_calls: 3}
"""
WEATHER = """\
id: weather-001
name: Stays out
inputs: {prompt: "What is the weather?"}
expected: {should_trigger: false, output_not_contains: [price]}
"""
LONG = """\
id: long-001
name: Writes at length
inputs: {prompt: "Which column has missing values?"}
graders:
  - {type: code, name: long, config: {assertions: ["len(output) > 5000"]}}
"""


def test_tasks_are_measured_with_the_graders_of_their_suite(measured: Measured) -> None:
    suite = {"eval.yaml": SUITE, "tasks/counts.yaml": COUNTS, "tasks/weather.yaml": WEATHER,
             "tasks/long.yaml": LONG}  # fmt: skip

    outcomes = measured({f"evals/csv/{name}": text for name, text in suite.items()} | CHARTS)

    assert outcomes == {
        "counts-001 with_skill": "pass",
        "counts-001 without_skill": "fail",
        "counts-001 trigger": "fail",  # by words in common, offline finds no skill
        "weather-001 trigger": "pass",
        "long-001 with_skill": "fail",
        "long-001 without_skill": "fail",
    }


def test_a_task_with_nothing_but_a_budget_is_skipped_and_no_mistake(tmp_path: Path) -> None:
    budget = "graders: [{type: behavior, config: {max_tool_calls: 3}}]"
    files = {
        "SKILL.md": SKILL,
        "tasks/a.yaml": f"inputs: {{prompt: Which column has missing values?}}\n{budget}\n",
    }
    for name, text in files.items():
        (tmp_path / "csv" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "csv" / name).write_text(text, "utf-8")

    (skill,) = load_skills(tmp_path / "csv" / "tasks" / "a.yaml")

    why = "graders: behavior: max_tool_calls: a budget is not a check of the answer"
    assert [case.skip for case in skill.cases] == [why]
    assert (skill.warnings, len(skill.hints)) == ((), 1)


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        (
            "inputs: {prompt: Note it., follow_up_prompts: ['Yes, write it.']}",
            "follow_up_prompts: a single answer has no further turns",
        ),
        ("inputs: {prompt_file: ask.md}", "prompt_file: write its text as 'prompt'"),
        (
            "inputs: {prompt: Note it., context: {fixture: data}}",
            "fixture: an agent is not given it",
        ),
        ("inputs: {prompt: Note it.}\nenabled: false", "enabled: the file disables it"),
    ],
)
def test_a_task_that_cannot_be_asked_as_meant_is_skipped_with_the_reason(
    tmp_path: Path, lines: str, reason: str
) -> None:
    file = tmp_path / "csv" / "tasks" / "a.yaml"
    file.parent.mkdir(parents=True)
    (tmp_path / "csv" / "SKILL.md").write_text(SKILL, "utf-8")
    file.write_text(f"{lines}\nexpected: {{output_contains: [noted]}}\n", "utf-8")

    (skill,) = load_skills(file)

    assert [case.skip for case in skill.cases] == [reason]


def test_a_grader_of_the_task_replaces_the_grader_of_the_suite_of_its_name(tmp_path: Path) -> None:
    folder = tmp_path / "csv"
    (folder / "tasks").mkdir(parents=True)
    (folder / "SKILL.md").write_text(SKILL, "utf-8")
    (folder / "eval.yaml").write_text(
        "graders:\n"
        "  - {type: text, name: format, config: {contains: [price]}}\n"
        "  - {type: text, name: polite, config: {contains: [please]}}\n"
        "  - {type: text, config: {contains: [thanks]}}\n",
        "utf-8",
    )
    grader = "{type: text, name: format, config: {contains: [which file]}}"
    file = folder / "tasks" / "a.yaml"
    file.write_text(f"inputs: {{prompt: Which column?}}\ngraders: [{grader}]\n", "utf-8")

    (skill,) = load_skills(file)

    (case,) = skill.cases
    assert case.checks == tuple(Contains(text=text) for text in ("which file", "please", "thanks"))


def _cases(tmp_path: Path, graders: str) -> tuple[Case, ...]:
    folder = tmp_path / "csv"
    (folder / "tasks").mkdir(parents=True)
    (folder / "SKILL.md").write_text(SKILL, "utf-8")
    file = folder / "tasks" / "a.yaml"
    file.write_text(f"inputs: {{prompt: Which column?}}\ngraders: [{graders}]\n", "utf-8")
    (skill,) = load_skills(file)
    return skill.cases


@pytest.mark.parametrize("key", ["pattern", "must_match", "regex_match"])
def test_a_pattern_is_one_under_each_of_its_keys(tmp_path: Path, key: str) -> None:
    (case,) = _cases(tmp_path, f"{{type: regex, config: {{{key}: '(?i)price'}}}}")

    assert case.checks == (Regex(pattern="(?i)price"),)


@pytest.mark.parametrize(
    ("grader", "reason"),
    [
        ("{type: regex, config: {forbids: a}}", "graders: regex: it has nothing that is read"),
        (
            "{type: skill_invocation, required_skills: []}",
            "graders: skill_invocation: it has nothing that is read",
        ),
        (
            "{type: code, config: {assertions: ['len(output) > 0']}}",
            "graders: code: any answer is longer than nothing",
        ),
    ],
)
def test_a_grader_that_says_nothing_known_is_left_out(
    tmp_path: Path, grader: str, reason: str
) -> None:
    (case,) = _cases(tmp_path, grader)

    assert case.skip == reason
