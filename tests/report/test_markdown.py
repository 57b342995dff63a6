"""The Markdown report, and what GitHub gets of it."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token

from pytest_upskill.figures.gate import Gate
from pytest_upskill.report.document import MARKER
from pytest_upskill.report.files.markdown import COMMENT_LIMIT, code, write_markdown
from pytest_upskill.report.files.phrases import headline
from tests.conftest import Run, WriteSkill, budget_cases
from tests.reporting import cell, chosen, counted, report, run, trial

HOSTILE = (
    "</details><script>alert(1)</script><img src=//evil.example/x>\n"
    "@octocat closes #1 [link](https://evil.example) ![](//evil.example/x)\n"
    "``` \n# not a heading\n~~~~\n`````` \n| a | b |\n\x1b[31mred\u202ecod\n<!-- pytest-upskill -->"
)
OWN_HTML = re.compile(r"</?details>|<summary><code>[^<]*</code></summary>|<br>|" + MARKER)


def tokens(markdown: str) -> list[Token]:
    parsed = MarkdownIt("commonmark").enable("table").parse(markdown)
    return [each for token in parsed for each in (token, *(token.children or ()))]


def test_the_first_lines_say_what_came_out_and_what_it_is_about() -> None:
    page = write_markdown(report(counted([(5, 0), (4, 1)]), counted([(0, 5)], model="opus")))

    lines = page.splitlines()
    assert lines[0] == MARKER
    failed = "1 of 2 gates failed (hurts 1), 1 of 2 cases failed with the skill"
    assert lines[1] == f"### ❌ `{failed}`"
    assert lines[3] == "- `billing on opus: the skill hurts`"
    assert lines[4] == "- `next: correct it`"
    assert lines[6] == "- `billing on haiku: +80 points: 2 of 2 cases better`"
    assert lines[9].startswith("Measured on 2 cases, 5 runs of each in each arm: ")


def test_a_gate_that_misses_a_threshold_is_not_said_to_fail_because_the_skill_helps() -> None:
    whole = report(counted([(5, 0), (4, 1)]), counted([(5, 0), (5, 0)], model="opus"))
    missed = replace(whole.gates[0], outcome="failed", text="billing on haiku: lift is under +90")

    lines = write_markdown(replace(whole, gates=(missed, whole.gates[1]))).splitlines()

    assert lines[1] == "### ❌ `1 of 2 gates failed`"
    assert lines[3] == "- `billing on haiku: lift is under +90`"


def test_one_run_of_one_case_is_no_plural() -> None:
    page = write_markdown(report(counted([(1, 0)], of=1)))

    assert "Measured on 1 case, once in each arm: " in page
    assert "- requested: 2 usable answers, " in page
    assert "replayed: " not in page


def test_a_missing_run_is_one_of_the_runs_of_its_case() -> None:
    arms = (trial("late", "with_skill", [run()] * 4, errors=("no reply",)),)

    page = write_markdown(report(cell(*arms, trial("late", "without_skill", [run()] * 5))))

    assert "Measured on 1 case, 5 runs of each in each arm: " in page


def test_what_passes_always_or_never_is_named_in_the_table_of_cases() -> None:
    page = write_markdown(report(counted([(5, 5), (0, 0), (3, 3), (4, 3), (3, 4)])))

    statuses = re.findall(r"^\| `(case-\d)` \| (?:\*\*failed\*\*, )?([a-z ]+)", page, re.MULTILINE)
    assert dict(statuses) == {
        "case-1": "always passes ",
        "case-2": "never passes ",
        "case-3": "same ",
        "case-4": "better ",
        "case-5": "worse ",
    }


def test_a_case_that_was_skipped_is_reported_and_not_counted() -> None:
    haiku = replace(counted([(5, 0)]), skipped=("case-1", "runs-a-script"))
    opus = replace(counted([(5, 0), (5, 0)], model="opus"), skipped=("runs-a-script",))

    page = write_markdown(report(haiku, opus))

    assert "Measured on 2 cases (1 more left out), 5 runs of each in each arm: " in page
    assert page.count("| `runs-a-script` | skipped |  |  |  |  |\n") == 2
    assert "| `case-1` | skipped |" not in page


def test_a_case_that_lacks_an_arm_is_not_counted_as_measured() -> None:
    arms = (trial("late", "with_skill", [run()]), trial("late", "without_skill", []))

    page = write_markdown(report(cell(*counted([(1, 0)], of=1).trials, *arms)))

    assert "Measured on 1 case (1 more left out), " in page


def test_a_title_says_which_skill_lost_queries_to_which() -> None:
    lost = report(counted([(5, 0)]), chosen([5, 1]))

    assert headline(lost) == (
        "billing on haiku: helps, 1 of 2 queries failed (billing lost 1 query to no skill)"
    )


def test_a_trial_that_failed_is_red_though_its_gate_passed() -> None:
    page = write_markdown(report(counted([(5, 0), (5, 0), (2, 0)])))

    failed = "1 of 3 cases failed with the skill"
    assert page.splitlines()[1] == f"### ❌ `billing on haiku: helps, {failed}`"
    assert "- `billing::case-3 on haiku: 2 of 5 runs passed; more than half must " in page
    assert "next: read the answers of the failed cases, and correct the skill or the case" in page
    assert "| `case-3` | **failed**, better |" in page
    assert "<br>**1 case failed** |" in page


def test_a_failed_gate_is_the_only_one_that_says_what_is_next() -> None:
    whole = report(counted([(5, 0), (5, 0), (2, 0)]))
    missed = replace(
        whole.gates[0], outcome="failed", text="lift is under +90", next_step="do this"
    )

    page = write_markdown(replace(whole, gates=(missed,)))

    assert "- `next: do this`" in page
    assert page.count("next: ") == 1


def test_the_matrix_holds_each_skill_on_each_model() -> None:
    page = write_markdown(
        report(
            counted([(5, 0), (5, 1)]),
            counted([(4, 5), (0, 5)], model="opus"),
            counted([(5, 0), (5, 1)], skill="csv"),
        )
    )

    assert "| skill | `haiku` | `opus` |" in page
    helps = "\u25b2 helps<br>10 → 100%  +90 [+54,+98]  \N{MULTIPLICATION SIGN}2.22 tok"
    assert f"| `billing` | {helps} | ▼ hurts<br>" in page
    assert page.count("**gate failed, 1 case failed**") == 1
    assert f"| `csv` | {helps} | \N{EN DASH} |" in page


def test_a_gate_without_a_decision_is_no_passed_gate() -> None:
    gates = report(counted([(5, 0)])).gates
    whole = report(counted([(5, 0)]), counted([(5, 0)], model="opus"))
    undecided = type(gates[0])(
        cell=gates[0].cell, outcome="skipped", text="gate not decided: only 1 of 2"
    )

    page = write_markdown(type(whole)(sessions=whole.sessions, gates=(undecided, whole.gates[1])))

    assert "\n### \u2754 `1 of 2 gates passed" in page
    assert "- `billing on haiku: gate not decided: only 1 of 2`" in page


def test_hostile_text_stays_text_in_markdown() -> None:
    missed = run(passed=False, text=HOSTILE, message=HOSTILE)
    written = report(
        cell(
            trial(HOSTILE, "with_skill", [missed], skill=HOSTILE, model=HOSTILE),
            trial(HOSTILE, "without_skill", [], skill=HOSTILE, errors=(HOSTILE,)),
        )
    )
    # A report that is merged may be from a fork.
    forged = replace(written.sessions[0], versions={HOSTILE: HOSTILE})

    page = write_markdown(replace(written, sessions=(forged,)))

    found = tokens(page)
    html = "".join(token.content for token in found if token.type in {"html_block", "html_inline"})
    prose = "".join(token.content for token in found if token.type == "text")
    assert not {"link_open", "image"} & {token.type for token in found}
    assert not OWN_HTML.sub("", html).strip()
    assert page.count("<details>") == html.count("<details>") == html.count("</details>")
    assert "octocat" not in prose
    assert "\x1b" not in page
    assert "\u202e" not in page


@pytest.mark.parametrize("text", ["", "`", "a`b", "```", " ", "a|b", "x\ny", "\\", "a\\|b"])
def test_inline_code_shows_what_it_was_given(text: str) -> None:
    (token,) = (each for each in tokens(f"x {code(text)} x") if each.type == "code_inline")

    assert token.content.strip() == text.replace("\n", " ").strip()


def test_a_page_of_any_size_fits_into_a_comment() -> None:
    missed = run(passed=False, text="語" * 10_000, message="m" * 200)
    trials = [trial(f"case-{number}", "with_skill", [missed] * 2) for number in range(500)]

    page = write_markdown(report(cell(*trials), counted([(5, 5)] * 500, model="opus")))

    assert COMMENT_LIMIT / 4 < len(page.encode()) <= COMMENT_LIMIT
    assert "more: --upskill-html has them." in page
    assert page.count("<details>") == page.count("</details>")
    assert "cost, versions, how to read this" in page


def test_a_run_writes_the_page_and_the_summary_of_its_job(
    run_once: Run,
    write_skill: WriteSkill,
    pytester: pytest.Pytester,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    write_skill(*budget_cases(5))
    summary, outputs = pytester.path / "summary.md", pytester.path / "outputs"
    summary.write_text("# Before\n", "utf-8")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    monkeypatch.setenv("GITHUB_OUTPUT", str(outputs))

    run_once("--upskill-models", "offline", "--upskill-md", "page.md", "skills")

    page = (pytester.path / "page.md").read_text("utf-8")
    assert page.startswith(f"{MARKER}\n### ✅ `billing on offline: helps, gate passed`\n")
    assert summary.read_text("utf-8") == f"# Before\n{page}"
    assert outputs.read_text("utf-8") == (
        "outcome=passed\nverdict=helps\nfailed-gates=[]\nfailed-cases=[]\n"
    )


def test_the_outputs_name_what_failed_on_one_line(
    run_once: Run, write_skill: WriteSkill, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_skill(gate={"min_lift": 0.5}, body="Nothing about money.\n")
    monkeypatch.setenv("GITHUB_OUTPUT", str(Path("outputs")))

    run_once("--upskill-models", "offline", "skills")

    text = Path("outputs").read_text("utf-8")
    assert 'failed-gates=["billing on offline"]\n' in text


def test_a_summary_that_is_nearly_full_is_not_overfilled(
    run_once: Run, write_skill: WriteSkill, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_skill()
    summary = Path("summary.md")
    summary.write_bytes(b"x" * 899_900)
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))

    run_once("--upskill-models", "offline", "skills")

    assert summary.stat().st_size <= 900_000


def test_a_summary_that_cannot_be_written_fails_nothing(
    run_once: Run, write_skill: WriteSkill, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_skill()
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "missing" / "summary.md"))

    result = run_once("--upskill-models", "offline", "skills")

    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(["cannot write GITHUB_STEP_SUMMARY: No such file or directory"])


def test_a_gate_that_decided_nothing_is_not_called_one_that_did_not_pass() -> None:
    gate = Gate(cell=chosen([5], [0]), outcome="skipped", text="gate not decided")

    assert (
        headline(replace(report(counted([(5, 0)])), gates=(gate,))) == "1 trigger gate not decided"
    )
