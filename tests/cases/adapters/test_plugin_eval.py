"""Suites of ``claude plugin eval``."""

from __future__ import annotations

import pytest

from tests.cases.adapters.conftest import CHARTS, QUESTION, SKILL, Measured
from tests.conftest import Run

ANSWERED = {
    "counts/prompt.md": """\
---
description: A column with missing values
tags: [columns]
runs: 3
max_turns: 10
allowed_tools: [Read, Skill]
---

Which column has missing values?
""",
    "counts/graders/column.md": "---\ntype: regex\nflags: i\n---\n\\bPRICE\\b\n",
    "counts/graders/no-size.md": "---\ntype: regex\npattern: size\nmatch: not_contains\n---\n",
    "counts/graders/own-words.md": "---\ntype: regex\narm: with-only\n---\nnever said\n",
    "counts/graders/README.md": "Notes without frontmatter.\n",
    "calls/prompt.md": "Which column has missing values?\n",
    "calls/graders/order.md": "---\ntype: tool_order\nbefore: Read\nafter: Edit\n---\n",
    "judged/case.yaml": "schema_version: '1.1'\nname: judged\n",
    "judged/prompt.md": "Which column has missing values?\n",
    "judged/graders/rubric.md": "---\ntype: llm\n---\nPASS if it names the column.\n",
    "indicator/prompt.md": "Which column has missing values?\n",
    "indicator/graders/file.md": "---\ntype: file_exists\npath: a.md\narm: with-only\n---\n",
}


def test_graders_of_the_answer_are_checks_and_indicators_are_left_out(measured: Measured) -> None:
    assert measured({f"evals/{name}": text for name, text in ANSWERED.items()}) == {
        "counts with_skill": "pass",
        "counts without_skill": "fail",
        "judged with_skill": "skip",
        "judged without_skill": "skip",
        "calls with_skill": "skip",  # needs an agent
        "calls without_skill": "skip",
        "indicator with_skill": "skip",
        "indicator without_skill": "skip",
    }


ROUTED = {
    "fires/prompt.md": "Which columns of the table are empty?\n",
    "fires/graders/fired.md": (
        '---\ntype: tool_used\ntool: Skill\ninput_match: \'"skill"\\s*:\\s*"(?:[\\w-]+:)?csv"\'\n'
        "---\nThe question was routed to the skill.\n"
    ),
    "quiet/case.yaml": """\
schema_version: "1.0"
name: quiet
execution: {prompt: Draw a chart of the prices, max_turns: 5}
graders:
  - {name: quiet, type: tool_used, tool: Skill, input_match: csv, max: 0}
""",
}


def test_calls_of_a_skill_are_triggers_of_the_skill_that_they_name(measured: Measured) -> None:
    suite = {f"evals/{name}": text for name, text in ROUTED.items()}

    assert measured({**suite, **CHARTS}) == {"fires trigger": "pass", "quiet trigger": "pass"}


def test_a_suite_whose_only_grader_has_no_type_says_so(
    pytester: pytest.Pytester, run_once: Run
) -> None:
    for name, text in {
        "skills/csv/SKILL.md": SKILL,
        "evals/smoke/prompt.md": QUESTION,
        "evals/smoke/graders/criteria.md": "# Must pass\n\nNames the column.\n",
    }.items():
        (pytester.path / name).parent.mkdir(parents=True, exist_ok=True)
        (pytester.path / name).write_text(text, "utf-8")

    result = run_once("--upskill-models", "offline", ".")

    result.stdout.fnmatch_lines(["*graders/criteria.md: no 'type' (write type: llm)"])
