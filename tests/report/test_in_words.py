"""The result of each skill on each model in one plain line, wherever it is reported."""

from __future__ import annotations

import re
from pathlib import Path

from pytest_upskill.report.files.html import write_html
from pytest_upskill.report.files.markdown import write_markdown
from pytest_upskill.report.terminal import table
from tests.conftest import QUESTION, Run, WriteSkill
from tests.loopback import Loopback
from tests.reporting import counted, report


def test_the_line_counts_the_cases_that_are_better_unchanged_and_worse() -> None:
    whole = report(counted([(5, 0), (5, 2), (3, 3), (1, 2)]))
    line = "+35 points: 2 of 4 cases better, 1 unchanged, 1 worse"

    rows = [text for text, _ in table(whole.gates, 80, cases=False)]
    page = write_markdown(whole)

    assert rows[3] == f"    {line}"
    assert page.splitlines()[3] == f"- `billing on haiku: {line}`"
    assert write_html(whole).index(line) < write_html(whole).index("<main>")


def test_one_line_says_what_the_results_of_offline_mean(
    run_once: Run, write_skill: WriteSkill
) -> None:
    for name in ("billing", "shipping"):
        write_skill({"input": QUESTION, "expected": {"contains": "37"}}, name=name)

    result = run_once(
        "--upskill-models", "offline", "--upskill-md", "r.md", "--upskill-html", "r.html", "skills"
    )

    line = (
        "no model was asked: offline quotes the skill, so a case is better if the skill has its "
        "facts"
    )
    pages = [result.stdout.str(), Path("r.md").read_text("utf-8"), Path("r.html").read_text()]
    assert [page.count(line) for page in pages] == [1, 1, 1]


def test_where_every_check_fails_no_more_cases_are_asked_for(
    run_once: Run, write_skill: WriteSkill
) -> None:
    write_skill({"id": "other", "input": "Who wrote Hamlet?", "expected": {"contains": "Bard"}})

    result = run_once("--upskill-models", "offline", "skills")

    result.stdout.no_fnmatch_line("too few runs on *")


def test_beside_a_model_the_line_is_about_offline_alone(
    run_once: Run, write_skill: WriteSkill, loopback: Loopback
) -> None:
    write_skill()

    result = run_once(f"--upskill-models=offline,m=openai:m@{loopback.openai_url}", "skills")

    result.stdout.fnmatch_lines(["no model was asked on offline: offline quotes the skill, so *"])


def test_what_offline_chooses_by_words_is_no_figure_no_gate_and_no_skip(
    run_once: Run, write_skill: WriteSkill
) -> None:
    write_skill(
        {"id": "lift", "input": QUESTION, "expected": {"contains": "37"}},
        {"id": "other", "input": "Facts about billing.", "should_trigger": False},
    )
    args = ("--upskill-models", "offline", "skills", "--upskill-baseline-update")

    result = run_once(*args, "--upskill-md", "r.md", "--upskill-html", "r.html")

    result.assert_outcomes(passed=4)
    assert not list(Path(".upskill").rglob("*trigger*.json"))
    line = "triggers are not measured on offline, which chooses by words in common"
    assert line in result.outlines
    pages = [result.stdout.str(), Path("r.md").read_text(), Path("r.html").read_text()]
    assert not any(re.search("false triggers|precision", page) for page in pages)
