"""``pytest-upskill report``: which reports it takes, and how it ends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_upskill.figures.cell import Cell
from tests.reporting import cell, counted, report, report_command, run, save, trial

# Whose folder is empty, and the working directory.
pytestmark = pytest.mark.usefixtures("pytester")


@pytest.mark.parametrize(
    ("thresholds", "code"),
    [
        ({"fail_on": ["hurts"]}, 1),
        ({"fail_on": ["no-effect"]}, 0),
        ({"fail_on": []}, 0),
        ({"fail_on": [], "min_lift": 0.1}, 1),
        ({"fail_on": [], "min_mean_pass_rate": 0.5}, 1),
    ],
)
def test_thresholds_are_those_of_the_runs(thresholds: Mapping[str, Any], code: int) -> None:
    assert report_command(saved_parts(thresholds, passes=(0, 5))) == code


def saved_parts(options: Mapping[str, Any], passes: tuple[int, int] = (5, 0)) -> list[str]:
    """Save the reports of two models whose sessions had these options; return their files."""
    files = []
    for model in ("haiku", "opus"):
        cell = counted([passes, passes], model=model)
        lenient = replace(cell, trials=tuple(replace(t, min_pass_rate=0.0) for t in cell.trials))
        part = report(lenient)
        (session,) = part.sessions
        changed = replace(session, options={**session.options, **options})
        files.append(save(f"{model}.json", replace(part, sessions=(changed,))))
    return files


def test_a_threshold_that_another_tool_wrote_without_its_point_still_holds() -> None:
    files = saved_parts({"fail_on": ["hurts"], "min_lift": 1.0}, passes=(3, 0))
    for file in map(Path, files):
        text = file.read_text("utf-8")
        assert '"min_lift": 1.0' in text
        file.write_text(text.replace('"min_lift": 1.0', '"min_lift": 1'), "utf-8")

    assert report_command(files) == 1


def test_a_report_of_no_session_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    Path("a.json").write_text('{"format": 1, "sessions": [], "entries": []}', "utf-8")

    assert report_command(["a.json"]) == 4
    assert capsys.readouterr().err.startswith("ERROR: a.json: ")


def test_a_trial_that_failed_is_red_as_it_was_in_its_run(
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = save("a.json", report(counted([(5, 0), (5, 0), (2, 0)])))

    assert report_command([file]) == 1
    out = capsys.readouterr().out
    assert out.startswith("billing on haiku: helps, 1 of 3 cases failed with the skill\n")
    assert "billing::case-3 on haiku: 2 of 5 runs passed; more than half must " in out
    assert out.endswith("min_pass_rate sets how many runs must pass\n")


def unanswered(of: int) -> Cell:
    """Make a cell of which one trial has no reply to its only run."""
    whole = counted([(1, 0)] * of, of=1)
    first, *rest = whole.trials
    return replace(whole, trials=(replace(first, runs=(), errors=("haiku: no reply",)), *rest))


def test_a_trial_without_a_result_is_not_green(capsys: pytest.CaptureFixture[str]) -> None:
    assert report_command([save("a.json", report(unanswered(of=20)))]) == 75
    out = capsys.readouterr().out
    assert "billing on haiku: helps, gate passed, not everything was measured\n" in out
    assert "1 trial not measured: haiku: no reply" in out


def test_what_a_replay_lacks_is_red() -> None:
    one = report(unanswered(of=20))
    (session,) = one.sessions
    replayed = replace(session, options={**session.options, "cache": "replay"})

    assert report_command([save("a.json", replace(one, sessions=(replayed,)))]) == 1


def test_a_part_whose_run_was_cut_short_leaves_the_whole_open(
    capsys: pytest.CaptureFixture[str],
) -> None:
    part = report(counted([(5, 0), (5, 0)]))
    (session,) = part.sessions
    cut = replace(part, sessions=(replace(session, complete=False),))

    assert report_command([save("a.json", cut)]) == 75
    out = capsys.readouterr().out
    assert out.startswith("billing on haiku: helps, gate passed, not everything was measured\n")
    assert "not everything ran: see the output of the run of 2026-01-02 03:04 UTC" in out


def test_runs_that_were_compared_with_baselines_are_not_decided_without(
    capsys: pytest.CaptureFixture[str],
) -> None:
    files = saved_parts({"compare": "baseline", "fail_on": ["regression"]})

    assert report_command(files) == 75
    assert "nothing was compared with the baseline: " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ([], "ERROR: no report: name the files that --upskill-json wrote\n"),
        (["missing.json"], "ERROR: missing.json: cannot be read: No such file or directory\n"),
        (["good.json", "--md", "good.json"], "ERROR: good.json: not such a report: *"),
        (["bad.json"], "ERROR: bad.json: not valid JSON: name a file that --upskill-json wrote\n"),
    ],
)
def test_what_cannot_be_read_is_refused_in_one_line(
    arguments: list[str], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("bad.json").write_text("nonsense", "utf-8")
    save("good.json", report(counted([(5, 0), (5, 0)])))

    assert report_command(arguments) == 4
    pytest.LineMatcher([capsys.readouterr().err]).fnmatch_lines([problem])


def test_a_report_that_is_named_twice_counts_once(capsys: pytest.CaptureFixture[str]) -> None:
    save("a.json", report(counted([(5, 0), (5, 0)])))
    once = report_command(["a.json"]), capsys.readouterr().out

    assert (report_command(["a.json", "./a.json"]), capsys.readouterr().out) == once


def test_a_case_missed_in_a_merged_report_keeps_its_answer() -> None:
    missed = run(passed=False, text="I do not know.")
    half = cell(trial("a", "with_skill", [missed]), trial("a", "without_skill", [run()]))

    report_command([save("a.json", report(half)), "--html", "page.html"])

    assert "I do not know." in Path("page.html").read_text("utf-8")


def test_the_command_writes_summary_and_outputs_for_github(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", "summary.md")
    monkeypatch.setenv("GITHUB_OUTPUT", "outputs")

    report_command([save("a.json", report(counted([(5, 0), (5, 1)])))])

    assert "billing on haiku" in Path("summary.md").read_text("utf-8")
    assert Path("outputs").read_text("utf-8").startswith("outcome=passed\nverdict=helps\n")
