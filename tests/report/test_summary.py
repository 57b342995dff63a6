"""The table of figures on the terminal: rows, columns, colors and verbosity."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pytest_upskill.report.terminal import LEGEND
from tests.conftest import QUESTION, Run, WriteSkill, budget_cases
from tests.loopback import Loopback, Reply

GREEN = {"id": "green", "input": QUESTION, "expected": {"contains": "37"}}
HALF = {
    "id": "half-of-the-checks",
    "input": QUESTION,
    "expected": {"contains": ["37", "38"]},
    "min_pass_rate": 0,
}
MODELS = ("--upskill-models", "offline,a-model-with-a-long-label=offline")


def summary(result: pytest.RunResult) -> list[str]:
    """Return the lines from the summary's headline to the next one, without those in words."""
    lines = [
        line
        for line in result.outlines
        if line and line != LEGEND and not re.match(r" {4}([+-]\d+ points|  \w)", line)
    ]
    headlines = [place for place, line in enumerate(lines) if line.startswith("==")]
    start = next(place for place in headlines if "without -> with" in lines[place])
    end = next(place for place in headlines if place > start)
    return lines[start:end]


def test_the_summary_has_a_row_for_each_cell(run_once: Run, write_skill: WriteSkill) -> None:
    write_skill(GREEN, HALF)
    write_skill(GREEN, name="shipping")

    result = run_once(*MODELS, "skills")

    assert summary(result) == [
        "=========================== skills: without -> with ============================",
        "model      pass rate  lift [95 %]      verdict       checks        tokens",
        "billing",
        "  offline  0->50%     +50 [-56,+95]    too few runs  0.0->1.0/1.5  74->127 x1.72",
        "  a-model-with-a-long-label",
        "           0->50%     +50 [-56,+95]    too few runs  0.0->1.0/1.5  74->127 x1.72",
        "shipping",
        "  offline  0->100%    +100 [-59,+100]  too few runs  0.0->1.0/1.0  74->128 x1.73",
        "  a-model-with-a-long-label",
        "           0->100%    +100 [-59,+100]  too few runs  0.0->1.0/1.0  74->128 x1.73",
        "too few runs on offline, a-model-with-a-long-label: add cases",
        (
            "no model was asked: offline quotes the skill, so a case is better if the skill has "
            "its facts"
        ),
    ]


def test_verbose_adds_a_row_for_each_case(run_once: Run, write_skill: WriteSkill) -> None:
    write_skill(GREEN, HALF)

    result = run_once("--upskill-models", "offline", "-v", "skills")

    assert summary(result)[1:7] == [
        "model      pass rate  lift [95 %]    verdict       checks        tokens",
        "billing",
        "  offline  0->50%     +50 [-56,+95]  too few runs  0.0->1.0/1.5  74->127 x1.72",
        "    half-of-the-checks",
        "           0/1->0/1   +0                           0.0->1.0/2.0  74->127",
        "    green  0/1->1/1   +100                         0.0->1.0/1.0  74->127",
    ]


SKIPPED = {"id": "in-c", "input": "Add in C.", "expected": {"compile": "c"}}


def test_verbose_shows_which_cases_were_not_measured(
    run_once: Run, write_skill: WriteSkill, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    write_skill(GREEN, SKIPPED, SKIPPED | {"id": "a-kernel", "models": ["haiku"]})

    result = run_once("--upskill-models", "offline", "-v", "skills")

    assert summary(result)[2:8] == [
        "billing",
        "  offline  0->100%    +100 [-59,+100]  too few runs  0.0->1.0/1.0  74->127 x1.72",
        "    green  0/1->1/1   +100                           0.0->1.0/1.0  74->127",
        "    a-kernel",
        "           skipped",
        "    in-c   skipped",
    ]


def test_characters_that_are_two_columns_wide_keep_the_figures_in_line(
    run_once: Run, write_skill: WriteSkill
) -> None:
    write_skill(GREEN, GREEN | {"id": "\u89e3\u6790"}, GREEN | {"id": "\u89e3\u0301"})

    result = run_once("--upskill-models", "offline", "-v", "skills")

    assert [line.partition("  +")[0] for line in summary(result)[3:7]] == [
        "  offline  0->100%  ",
        "    green  0/1->1/1 ",
        "    \u89e3\u6790   0/1->1/1 ",
        "    \u89e3\u0301     0/1->1/1 ",
    ]


FEW = "0->50%     +50 [-56,+95]  too few runs"
ALL = f"{FEW}  0.0->1.0/1.5  74->127 x1.72"


@pytest.mark.parametrize(
    ("columns", "rows"),
    [
        (140, [f"  offline                    {ALL}", f"  a-model-with-a-long-label  {ALL}"]),
        (60, [f"  offline  {FEW}", "  a-model-with-a-long-label", f"           {FEW}"]),
        (40, ["  offline", f"          {FEW}", "  a-model-with-a-long-label", f"          {FEW}"]),
    ],
)
def test_figures_are_whole_and_names_and_columns_are_what_fits(
    run_once: Run,
    write_skill: WriteSkill,
    monkeypatch: pytest.MonkeyPatch,
    columns: int,
    rows: list[str],
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    write_skill(GREEN, HALF)

    result = run_once(*MODELS, "skills")

    assert summary(result)[3:-2] == rows


@pytest.mark.parametrize("quiet", ["-q", "-qq"])
def test_quiet_leaves_only_what_needs_action(
    run_once: Run, write_skill: WriteSkill, quiet: str
) -> None:
    write_skill(GREEN)

    result = run_once("--upskill-models", "offline", "--upskill-min-lift", "1", quiet, "skills")

    lines = [line for line in result.outlines if line]
    assert set(lines[0].split()[0]) == {".", "-"}
    # The table is what was run for, and misleads without its notes; legend and plan are not.
    assert not any("mean per run" in line or "to request" in line for line in lines)
    assert any(line.startswith("  offline  0->100%") for line in lines) == (quiet == "-q")
    assert len(lines) == 1 or quiet == "-q"


def test_quiet_keeps_a_red_gate(run_once: Run, write_skill: WriteSkill) -> None:
    write_skill(GREEN, gate={"min_lift": 1}, body="Nothing.\n")

    result = run_once("--upskill-models", "offline", "-q", "skills")

    result.stdout.fnmatch_lines(["FAILED skills/billing/skill_meta.json::gate?offline? - *"])


def test_misses_without_the_skill_leave_the_closing_line_green(
    run_once: Run, write_skill: WriteSkill
) -> None:
    write_skill(GREEN)

    result = run_once("--upskill-models", "offline", "--color=yes", "skills")

    closing = result.outlines[-1]
    assert "3 passed" in closing
    assert set(re.findall(r"\x1b\[([0-9;]+)m", closing)) == {"32", "1", "0"}


def test_a_red_cell_is_red_and_one_that_helps_is_green(
    run_once: Run, write_skill: WriteSkill
) -> None:
    write_skill(*budget_cases(5), name="helps")
    write_skill(GREEN, name="red", gate={"min_lift": 1}, body="Nothing.\n")

    result = run_once("--upskill-models", "offline", "--color=yes", "skills")

    colors = [line[:5] for line in result.outlines if "  offline  " in line]
    assert colors == ["\x1b[32m", "\x1b[31m"]


def test_the_header_says_what_a_name_stands_for(run_once: Run, write_skill: WriteSkill) -> None:
    write_skill(GREEN)

    result = run_once("--upskill-models", "small=offline", "--upskill-runs", "2", "skills")

    result.stdout.fnmatch_lines(
        [
            "upskill: small (offline:offline); runs: 2; 1 for small, as further runs would *",
            "upskill: 2 trials, 2 answers: 0 recorded, 2 to request",
        ]
    )


def test_figures_that_were_not_measured_are_not_made_up(
    run_once: Run, write_skill: WriteSkill, loopback: Loopback
) -> None:
    loopback.answer = lambda _: Reply(text="37", usage=None)
    write_skill(GREEN)

    result = run_once("--upskill-models", f"m@{loopback.openai_url}", "skills")

    result.stdout.fnmatch_lines(
        [
            "  m       100->100%  +0 [-88,+88]  too few runs  1.0->1.0/1.0  n/a->n/a",
            "requested 2 answers: cost n/a",
        ]
    )


def test_a_cell_with_one_arm_has_no_lift(run_once: Run, write_skill: WriteSkill) -> None:
    write_skill(GREEN)

    result = run_once("--upskill-models", "offline", "-m", "upskill(arm='with_skill')", "skills")

    assert summary(result)[3:] == [
        "  offline  n/a->100%  n/a          too few runs  n/a->1.0/1.0  n/a->127",
        "billing on offline: gate not decided: only 1 of 2 tests ran",
    ]


def test_the_table_has_a_legend(run_once: Run, write_skill: WriteSkill) -> None:
    write_skill(GREEN)
    write_skill(GREEN, name="shipping")

    result = run_once("--upskill-models", "offline", "skills")

    assert LEGEND in result.outlines
    result.assert_outcomes(passed=6)


def test_the_letters_of_gates_are_told_from_those_of_trials(
    run: Run, write_skill: WriteSkill
) -> None:
    write_skill(GREEN)
    write_skill(GREEN, name="shipping")

    result = run("--upskill-models=offline", "skills")

    at = next(place for place, line in enumerate(result.outlines) if line.startswith("gates:"))
    under_xdist = "gates: .." in result.outlines[at]
    if not under_xdist:
        paths = [line.split()[0] for line in result.outlines[at + 1 : at + 3]]
        assert paths == [f"skills/{name}/skill_meta.json" for name in ("billing", "shipping")]
    for verbosity in ("-q", "-v"):
        assert "gates:" not in run("--upskill-models=offline", verbosity, "skills").stdout.str()
