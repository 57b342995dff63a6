"""Configurations of promptfoo, and files of tests that they list."""

from __future__ import annotations

import pytest

from tests.cases.adapters.conftest import CHARTS, Measured

CONFIG = """\
prompts: ["Question: {{question}}"]
providers: [openai:gpt-5]
defaultTest:
  assert:
    - {type: latency, threshold: 3000}
tests:
  - description: counts
    vars: {question: Which column has missing values?, number: 37}
    assert:
      - {type: icontains, value: PRICE}
      - {type: contains, value: "{{number}} missing"}
      - {type: not-regex, value: '\\bquantity\\b'}
      - {type: javascript, value: output.length < 900}
  - description: case
    vars: {question: Which column has missing values?}
    assert: [{type: contains, value: PRICE}]
  - description: several
    vars:
      question: [Which column has missing values?, "How many missing values, in which column?"]
    assert: [{type: icontains-any, value: "PRICE, quantity"}]
  - description: judged
    vars: {question: Which column has missing values?}
    assert:
      - {type: contains, value: price}
      - {type: llm-rubric, value: Says how many are missing}
  - description: start
    vars: {question: Which column has missing values?}
    assert:
      - {type: starts-with, value: "Offline model: an excerpt"}
      - {type: not-ends-with, value: "?"}
  - description: data
    vars: {question: Which column has missing values?}
    assert: [{type: is-json}]
  - description: script
    vars: {question: Which column has missing values?}
    assert: [{type: javascript, value: output.length > 0}]
"""


def test_assertions_are_checked_as_promptfoo_does(measured: Measured) -> None:
    assert measured({"skills/csv/evals/promptfooconfig.yaml": CONFIG}) == {
        "counts with_skill": "pass",
        "counts without_skill": "fail",
        "case with_skill": "fail",  # contains distinguishes upper and lower case
        "case without_skill": "fail",
        "question-which-column-has-missing-values with_skill": "pass",
        "question-which-column-has-missing-values without_skill": "fail",
        "question-how-many-missing-values-in-8a2591 with_skill": "pass",
        "question-how-many-missing-values-in-8a2591 without_skill": "fail",
        "judged with_skill": "pass",  # by its text; nobody judges its rubric
        "judged without_skill": "fail",
        "start with_skill": "pass",
        "start without_skill": "fail",
        "data with_skill": "fail",
        "data without_skill": "fail",
        "script with_skill": "skip",
        "script without_skill": "skip",
    }


ROUTES = """\
- description: empty columns
  metadata: {type: trigger, skill: csv}
  vars: {prompt: Which columns of the table are empty?}
  assert: [{type: equals, value: csv}]
- description: a chart
  metadata: {skill: csv}
  vars: {prompt: Draw a chart of the prices}
  assert: [{type: not-skill-used, value: {name: csv}}]
"""


def test_tests_of_routing_are_measured_as_triggers(measured: Measured) -> None:
    assert measured({"skills/csv/evals/tests/trigger-tests.yaml": ROUTES, **CHARTS}) == {
        "empty columns trigger": "pass",
        "a chart trigger": "pass",
    }


@pytest.mark.parametrize(
    ("prompts", "reason"),
    [
        ("['{{question}}', 'Be brief. {{question}}']", "2 prompts: keep the one that has no skill"),
        ("['{{skill}} {{question}}']", "'skill' is undefined"),
    ],
)
def test_a_prompt_that_cannot_be_the_same_in_both_arms_is_skipped(
    prompts: str, reason: str, measured: Measured, capsys: pytest.CaptureFixture[str]
) -> None:
    test = "[{vars: {question: Hi}, assert: [{type: contains, value: price}]}]"

    outcomes = measured({"skills/csv/evals/promptfoo.yaml": f"prompts: {prompts}\ntests: {test}\n"})

    assert set(outcomes.values()) == {"skip"}
    assert reason in capsys.readouterr().out


def test_a_step_of_a_conversation_is_skipped_with_that_reason(
    measured: Measured, capsys: pytest.CaptureFixture[str]
) -> None:
    test = "{vars: {question: Hi}, metadata: {conversationId: a}, assert: [{type: is-json}]}"

    outcomes = measured({"skills/csv/evals/promptfoo.yaml": f"tests: [{test}]\n"})

    assert set(outcomes.values()) == {"skip"}
    assert "vars: it is a part of a conversation" in capsys.readouterr().out
