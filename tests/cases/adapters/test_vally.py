"""Suites of Vally."""

from __future__ import annotations

import pytest

from pytest_upskill.cases.skill import Trigger
from pytest_upskill.checks.calls import CallOf, ToolCalled
from tests.cases.adapters.conftest import CHARTS, Measured
from tests.evals import read

SUITE = """\
name: csv-eval
type: capability
defaults: {runs: 3, timeout: 2m}
environment: {skills: [../../skills/csv]}
scoring: {threshold: 0.8}
stimuli:
  - name: counts
    prompt: Which column has missing values?
    tags: {category: columns}
    graders:
      - {type: output-contains, config: {substring: PRICE}}
      - {type: output-contains, config: {substring: PRICE, case_sensitive: no, negate: off}}
      - {type: output-matches, config: {pattern: '(?i)\\bPRICE\\b has \\d+'}}
      - {type: output-matches, config: {pattern: quantity, negate: true}}
      - {type: completed}
      - {type: wall-time, config: {max: 60s}}
  - name: case
    prompt: Which column has missing values?
    graders:
      - {type: output-contains, config: {substring: PRICE, case_sensitive: true}}
  - name: routes
    prompt: Which columns of the table are empty?
    graders:
      - {type: skill-invocation, config: {required: [csv]}}
  - name: stays-out
    prompt: Draw a chart of the prices
    graders:
      - {type: skill-invocation, config: {disallowed: [csv]}}
  - name: judged
    prompt: Which column has missing values?
    rubric: [Names the column]
    graders: [{type: prompt}]
  - name: leaves-a-file
    prompt: Write the name of the column to a file
    graders:
      - {type: file-matches, config: {path: "*.txt", pattern: price}}
  - name: calls
    prompt: Which column has missing values?
    graders:
      - {type: tool-call-count, config: {max: 3}}
      - {type: output-not-contains, config: {substring: error}}
"""


@pytest.mark.parametrize(("skills", "outcome"), [("[csv]", "pass"), ("[csv, charts]", "skip")])
def test_of_several_skills_that_are_all_required_one_choice_shows_nothing(
    measured: Measured, skills: str, outcome: str
) -> None:
    grader = f"{{type: skill-invocation, config: {{required: {skills}}}}}"
    suite = f"stimuli: [{{name: a, prompt: Which columns are empty?, graders: [{grader}]}}]\n"

    outcomes = measured(
        {"evals/csv/eval.yaml": f"environment: {{skills: [csv]}}\n{suite}", **CHARTS}
    )

    assert set(outcomes.values()) == {outcome}


def test_stimuli_are_measured_by_their_graders(measured: Measured) -> None:
    assert measured({"evals/csv/eval.yaml": SUITE, **CHARTS}) == {
        "counts with_skill": "pass",
        "counts without_skill": "fail",
        "case with_skill": "fail",
        "case without_skill": "fail",
        "routes trigger": "pass",
        "stays-out trigger": "pass",
        "judged with_skill": "skip",
        "judged without_skill": "skip",
        "leaves-a-file with_skill": "skip",  # needs an agent
        "leaves-a-file without_skill": "skip",
        "calls with_skill": "skip",  # nothing positive is left
        "calls without_skill": "skip",
    }


CONSTRAINED = """\
stimuli:
  - name: asserts
    prompt: Count the rows
    constraints:
      max_turns: 9
      expect_skills: [csv]
      expect_tools: [bash]
      reject_tools: [web]
      expect_speed: high
  - name: stays-out
    prompt: Draw a chart
    constraints: {reject_skills: [csv]}
  - name: mcp
    prompt: Count the rows
    environment: {mcpServers: {db: {command: db}}}
    graders: [{type: output-contains, config: {substring: "3"}}]
"""


def test_expectations_among_the_constraints_are_read() -> None:
    found = read(CONSTRAINED, suffix=".yaml")
    asserts, stays_out, mcp = found.cases

    bash, web = (CallOf(names=(name,), pattern="") for name in ("bash", "web"))
    assert asserts.checks == (
        ToolCalled(calls=(bash,), least=1, most=None),
        ToolCalled(calls=(web,), least=0, most=0),
    )
    assert (asserts.trigger, stays_out.trigger) == (Trigger(should=True), Trigger(should=False))
    assert mcp.skip is None
    assert {each.what.partition(" (")[0] for each in found.warnings} == {
        "mcpServers: a model is not given them",
        "is not read",
    }
