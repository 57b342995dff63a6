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


CHECKED = "assert: [{type: contains, value: price}]"
TWO = "assert: [{type: contains, value: price}, {type: contains, value: rows}]"


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        ("tests: file://tests.csv", "tests: in another file or form, which is not read: write"),
        ("tests: [file://tests.csv]", "tests: in another file or form, which is not read: write"),
        (f"scenarios: [{{tests: [{{{CHECKED}}}]}}]", "scenarios: in another file or form"),
        (f"tests: [{{{CHECKED}, options: {{transform: output.trim()}}}}]",
         "options: transform is not applied"),
        (f"tests: [{{{TWO}, threshold: 0.5}}]", "threshold: all checks have to pass here"),
        (f"defaultTest: {{threshold: 0.5}}\ntests: [{{{TWO}}}]", "threshold: all checks have to"),
        ("tests: [{assert: [{type: contains, value: price, transform: output.trim()}]}]",
         "contains: its transform is not applied"),
    ],
)  # fmt: skip
def test_what_would_be_measured_otherwise_is_skipped_with_that_reason(
    config: str, reason: str, measured: Measured, capsys: pytest.CaptureFixture[str]
) -> None:
    text = f"prompts: [Which column has missing values?]\n{config}\n".replace(
        "[{assert", "[{vars: {}, assert"
    )

    outcomes = measured({"skills/csv/evals/promptfooconfig.yaml": text})

    assert set(outcomes.values()) == {"skip"}
    assert reason in " ".join(capsys.readouterr().out.split())


def test_a_misspelled_key_is_named_with_its_place(
    measured: Measured, capsys: pytest.CaptureFixture[str]
) -> None:
    test = f"{{vars: {{q: Which?}}, {CHECKED.replace('assert', 'asserts')}}}"

    measured({"skills/csv/evals/promptfooconfig.yaml": f"prompts: [a]\ntests: [{test}]\n"})

    assert "promptfooconfig.yaml:2:29: tests[0].asserts: is not read" in " ".join(
        capsys.readouterr().out.split()
    )


def test_a_check_without_weight_does_not_count(measured: Measured) -> None:
    checks = "[{type: contains, value: price}, {type: contains, value: rows, weight: 0}]"
    test = f"{{description: a, vars: {{q: Which column has missing values?}}, assert: {checks}}}"

    assert measured(
        {"skills/csv/evals/promptfooconfig.yaml": f"prompts: ['{{{{q}}}}']\ntests: [{test}]\n"}
    ) == {"a with_skill": "pass", "a without_skill": "fail"}


def test_words_times_and_versions_are_the_text_that_is_written(
    measured: Measured, capsys: pytest.CaptureFixture[str]
) -> None:
    config = """\
prompts: ["Which column has missing values?"]
defaultTest: {vars: {no: No, yes: true, at: 12:30, version: 3.10}}
tests:
  - {description: a, vars: {}, assert: [{type: icontains, value: "{{no}} {{yes}} {{at}}"}]}
  - {description: b, vars: {}, assert: [{type: icontains, value: "{{version}}"}]}
  - {description: c, vars: {}, assert: [{type: not-icontains, value: No}]}
  - {description: d, vars: {}, assert: [{type: contains, value: true}]}
"""

    outcomes = measured({"skills/csv/evals/promptfooconfig.yaml": config})

    assert {name: outcome for name, outcome in outcomes.items() if name.endswith("with_skill")} == {
        "a with_skill": "fail",
        "b with_skill": "fail",
        "c with_skill": "fail",
        "d with_skill": "skip",
    }
    out = capsys.readouterr().out
    assert "contains 'No true 12:30': not in" in out
    assert "contains '3.10': not in" in out
    assert "not_contains 'No': found in" in out
    assert "tests[3].assert[0]: contains: is true or false, not text: quote it" in out


def test_variables_in_variables_and_quoted_commas_are_read_as_promptfoo_does(
    measured: Measured,
) -> None:
    config = """\
prompts: ["{{q}}"]
tests:
  - description: nested
    vars: {q: "Which column has {{what}}?", what: missing values}
    assert: [{type: contains, value: 37 missing}]
  - description: quoted
    vars: {q: Which column has missing values?}
    assert: [{type: contains-any, value: '"price, has", quantity'}]
  - description: whole
    vars: {q: Which column has missing values?}
    assert: [{type: contains-any, value: '"missing values? The", quantity'}]
  - description: within
    vars: {q: Which column has missing values?}
    assert: [{type: contains-json}]
  - description: both
    vars: {q: Which columns of the table are empty?}
    assert: [{type: skill-used, value: [csv, charts]}]
"""

    outcomes = measured({"skills/csv/evals/promptfooconfig.yaml": config, **CHARTS})

    assert {name: each for name, each in outcomes.items() if "without" not in name} == {
        "nested with_skill": "pass",
        "quoted with_skill": "fail",
        "whole with_skill": "pass",
        "within with_skill": "skip",
        "both with_skill": "skip",
    }
