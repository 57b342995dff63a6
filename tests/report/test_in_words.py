"""The result of each skill on each model in one plain line, wherever it is reported."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pytest_upskill.report.files.html import write_html
from pytest_upskill.report.files.markdown import write_markdown
from pytest_upskill.report.terminal import table
from tests.conftest import QUESTION, Run, WriteSkill
from tests.reporting import counted, report


def test_the_line_counts_the_cases_that_are_better_unchanged_and_worse() -> None:
    whole = report(counted([(5, 0), (5, 2), (3, 3), (1, 2)]))
    line = "+35 points: 2 of 4 cases better, 1 unchanged, 1 worse"

    rows = [text for text, _ in table(whole.gates, 80, cases=False)]
    page = write_markdown(whole)

    assert rows[3] == f"    {line}"
    assert page.splitlines()[3] == f"- `billing on haiku: {line}`"
    assert write_html(whole).index(line) < write_html(whole).index("<main>")


@pytest.mark.parametrize(
    ("texts", "says"),
    [
        (("37",), "offline found the facts in the skill"),
        (("37", "38"), "offline found the facts in the skill for 1 of 2 cases"),
        (("38",), "the checks failed on what offline quoted of the skill"),
        (("Offline model",), "offline found the facts in the questions themselves"),
    ],
)
def test_on_offline_the_line_says_that_only_the_skills_text_was_looked_at(
    run_once: Run, write_skill: WriteSkill, texts: tuple[str, ...], says: str
) -> None:
    write_skill(
        *({"id": text, "input": QUESTION, "expected": {"contains": text}} for text in texts)
    )

    result = run_once("--upskill-models", "offline", "--upskill-md", "r.md", "skills")

    result.stdout.fnmatch_lines(["    *points: *", f"    {says}; no model was asked"])
    assert f"; {says}; no model was asked" in Path("r.md").read_text("utf-8")


def test_on_offline_no_more_cases_are_asked_for_where_every_check_fails(
    run_once: Run, write_skill: WriteSkill
) -> None:
    write_skill({"id": "other", "input": "Who wrote Hamlet?", "expected": {"contains": "Bard"}})

    result = run_once("--upskill-models", "offline", "skills")

    result.stdout.fnmatch_lines(["    offline found nothing in the skill that matches the *"])
    result.stdout.no_fnmatch_line("too few cases *")


def test_what_offline_chooses_by_words_is_no_figure_no_gate_and_no_skip(
    run_once: Run, write_skill: WriteSkill
) -> None:
    write_skill(
        {"id": "lift", "input": QUESTION, "expected": {"contains": "37"}},
        {"id": "other", "input": "Facts about billing.", "should_trigger": False},
    )
    args = ("--upskill-models", "offline", "skills")

    result = run_once(*args, "--upskill-md", "r.md", "--upskill-html", "r.html")

    result.assert_outcomes(passed=4)
    line = "triggers are not measured on offline, which chooses by words in common"
    assert line in result.outlines
    pages = [result.stdout.str(), Path("r.md").read_text(), Path("r.html").read_text()]
    assert not any(re.search("false triggers|precision", page) for page in pages)
