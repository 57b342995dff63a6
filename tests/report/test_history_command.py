"""How ``pytest-upskill runs`` shows the history: bars, tables, pages."""

from __future__ import annotations

import csv
import io
import re
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_upskill.cases.skill import Trigger
from pytest_upskill.commands.main import main
from tests.report.logged_runs import changed, log, served
from tests.reporting import chosen, counted

# Whose folder is empty, and the working directory.
pytestmark = pytest.mark.usefixtures("pytester")


def test_a_skill_of_which_only_some_trials_ran_is_not_shown(
    capsys: pytest.CaptureFixture[str],
) -> None:
    cell = counted([(5, 0), (5, 0)])
    log(cell, day=1)
    log(replace(cell, trials=cell.trials[:2]), day=2)

    assert main(["runs"]) == 0
    out, err = capsys.readouterr()
    assert "2026-01-02" not in out
    assert err == "1 not shown, as only some of the trials of the skill ran\n"


def test_the_terminal_shows_bars_and_runs_with_breaks(capsys: pytest.CaptureFixture[str]) -> None:
    cell = counted([(3, 3), (5, 3)])
    log(cell, day=1)
    log(changed(cell, served("haiku-2")), day=2, commit="b" * 40, dirty=True)

    assert main(["runs"]) == 0
    out = capsys.readouterr().out
    assert out.splitlines()[:11] == [
        "skill: billing",
        "",
        "haiku",
        "  baseline   ████████████░░░░░░░░   60%",
        "  with skill ████████████████░░░░   80%  (+20%)",
        "",
        "  date              commit    pass rate  lift [95 %]    verdict",
        "  2026-01-01 00:00  aaaaaaa   60->80%    +20 [-22,+55]  too few runs",
        "  -- model changed: anthropic:haiku (haiku-1) to anthropic:haiku (haiku-2)",
        "  2026-01-02 00:00  bbbbbbb*  60->80%    +20 [-22,+55]  too few runs",
        "",
    ]
    assert out.endswith("checks: passed/all\n*: with uncommitted changes\n")


def test_the_history_shows_triggers_apart_from_the_lift(
    capsys: pytest.CaptureFixture[str],
) -> None:
    other = Trigger(should=False, others=("tsv",))
    log(counted([(3, 3), (5, 3)]), chosen([5, 4], [1]), day=1)
    log(chosen([5, 5], [0]), day=2, branch="topic/of-a-rather-long-name")
    log(
        changed(chosen([5, 5], [0]), lambda t: replace(t, grader_digest="new", trigger=other)),
        day=3,
    )

    assert main(["runs"]) == 0
    out = capsys.readouterr().out
    assert out.splitlines()[9:20] == [
        "skill: billing",
        "",
        "haiku",
        "  recall     ░░░░░░░░░░░░░░░░░░░░   n/a",
        "  false      █████████████░░░░░░░   67%",
        "",
        "  date              commit   branch                       recall [95 %]  false triggers",
        "  2026-01-01 00:00  aaaaaaa  main                         90% [28,99.5]  20% [1,87]",
        "  2026-01-02 00:00  aaaaaaa  topic/of-a-rather-long-name  100% [34,100]  0% [0,79]",
        "  -- cases changed",
        "  2026-01-03 00:00  aaaaaaa  main                         n/a            67% [21,94]",
    ]
    assert main(["runs", "--csv"]) == 0
    lift, first, *_ = csv.DictReader(io.StringIO(capsys.readouterr().out))
    assert (lift["trigger_recall"], lift["lift"]) == ("", "0.2")
    assert (first["trigger_recall"], first["lift"]) == ("0.9", "")
    assert main(["runs", "--html", "page.html"]) == 0
    page = Path("page.html").read_text("utf-8")
    assert page.count('<polyline class="line"') == 2
    assert page.count('<line class="break"') == 1


def test_the_matrix_shows_the_lift_and_its_own_change(capsys: pytest.CaptureFixture[str]) -> None:
    for day, passes in ((1, (4, 5)), (2, (3, 5))):
        log(*(counted([passes] * 4, model=each) for each in ("haiku", "opus")), day=day)
    log(*(counted([(3, 2)] * 4, model=each) for each in ("haiku", "opus")), day=3)

    assert main(["runs"]) == 0
    head, row, *_ = capsys.readouterr().out.splitlines()
    # The pass rate with the skill did not change.
    assert head.split() == ["lift", "(change)", "cost", "haiku", "opus"]
    assert row.startswith("billing             +20 (+60) ")


def test_the_terminal_can_show_tokens_and_fewer_runs(capsys: pytest.CaptureFixture[str]) -> None:
    for day in (1, 2, 3):
        log(counted([(5, 0)]), day=day)

    assert main(["runs", "--metric", "tokens", "--last", "1"]) == 0
    out = capsys.readouterr().out
    assert "  with skill ████████████████████   910  (x2.22)\n" in out
    assert "  2026-01-03 00:00  aaaaaaa  410->910 x2.22  +100 " in out
    assert "2026-01-02" not in out
    assert "  and 2 earlier: --last 3 shows them\n" in out


def test_skills_and_models_can_be_chosen(capsys: pytest.CaptureFixture[str]) -> None:
    log(*(counted([(5, 0)], model=each) for each in ("haiku", "opus")), day=1)
    log(counted([(5, 0)], skill="csv"), day=2)

    assert main(["runs", "-s", "billing", "-m", "opus"]) == 0
    out = capsys.readouterr().out
    assert "opus\n" in out
    assert "haiku\n" not in out
    assert "csv" not in out


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["-s", "bilink"], "the history has no skill 'bilink': it has billing"),
        (["-m", "gpt"], "the history has no model 'gpt': it has haiku"),
        (["-d", "nowhere"], "no runs in nowhere: eval *"),
        (
            ["-d", "empty"],
            "no runs in empty; empty/bad.json: not a report *: eval *",
        ),
        (["--last", "0"], "argument --last: '0' is not a whole number above 0: *"),
        (["--csv", "empty"], "cannot write empty: Is a directory"),
    ],
)
def test_what_the_history_does_not_have_is_refused(
    arguments: list[str], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    log(counted([(5, 0)]), day=1)
    Path("empty").mkdir()
    Path("empty/bad.json").write_text("{}", "utf-8")

    assert main(["runs", *arguments]) == 4
    pytest.LineMatcher(capsys.readouterr().err.splitlines()).fnmatch_lines([f"ERROR: {problem}"])


def test_the_table_has_every_run_and_no_formula(capsys: pytest.CaptureFixture[str]) -> None:
    cell = counted([(3, 3), (5, 3)], skill="=cmd()")
    log(cell, day=1)
    log(changed(cell, served("a;=evil")), day=2, commit="b" * 40, dirty=True)

    assert main(["runs", "--csv"]) == 0
    text = capsys.readouterr().out
    first, second = csv.DictReader(io.StringIO(text))
    assert '"a;\'=evil"' in text
    assert (first["skill"], second["served"], second["dirty"]) == ("'=cmd()", "a;'=evil", "True")
    assert (first["lift"], first["break"]) == ("0.2", "")
    assert (
        second["break"] == "model changed: anthropic:haiku (haiku-1) to anthropic:haiku (a;'=evil)"
    )


def test_the_page_draws_no_line_over_a_break() -> None:
    cell = counted([(3, 3), (5, 3)], model="<script>")
    for day in (1, 2):
        log(cell, day=day)
    for day in (3, 4):
        log(changed(cell, served("haiku-2")), day=day)

    assert main(["runs", "--html", "out/page.html"]) == 0
    page = Path("out/page.html").read_text("utf-8")
    lines = re.findall(r'<polyline class="line" points="([^"]*)"', page)
    assert [len(line.split()) for line in lines] == [2] * 6
    assert page.count('<line class="break"') == 1
    assert "<script" not in page


def test_what_offline_chooses_by_words_is_in_no_history(
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = changed(chosen([5, 5], [0]), lambda t: replace(t, resolved="offline:offline"))
    log(counted([(5, 0)]), replace(words, resolved="offline:offline"), day=1)

    assert main(["runs"]) == 0
    assert "recall" not in capsys.readouterr().out
