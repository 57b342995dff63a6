"""The history of runs: what is kept, what breaks a line, and how it is shown."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from pytest_upskill.cells.cell import Cell
from pytest_upskill.cells.trigger_cell import TriggerCell
from pytest_upskill.cells.trigger_gate import TriggerGate
from pytest_upskill.checks.files import WorkspaceFile
from pytest_upskill.commands.main import main
from pytest_upskill.completion import AgentRun, Completion, ToolUse
from pytest_upskill.formats.skill import Trigger
from pytest_upskill.report.files.json import read_json, write_json
from pytest_upskill.report.history.log import log_run, without_answers
from pytest_upskill.report.history.points import Group, Series, read_history
from pytest_upskill.repository.revision import Revision
from pytest_upskill.trials.result import TrialResult
from tests.conftest import Run, WriteSkill
from tests.git_repository import commit_all, git
from tests.reporting import chosen, counted, report

Change = Callable[[TrialResult], TrialResult]


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def log(
    *cells: Cell | TriggerCell,
    day: int,
    commit: str = "a" * 40,
    branch: str = "main",
    dirty: bool = False,
) -> None:
    """Write a run of that day of January into the history."""
    whole = report(*(each for each in cells if isinstance(each, Cell)))
    triggers = (
        TriggerGate(cell=each, outcome="passed", text="")
        for each in cells
        if isinstance(each, TriggerCell)
    )
    (session,) = whole.sessions
    session = replace(
        session,
        date=datetime(2026, 1, day, tzinfo=UTC),
        revision=Revision(commit=commit, branch=branch, dirty=dirty),
    )
    log_run(
        replace(whole, sessions=(session,), trigger_gates=tuple(triggers)), Path(".upskill/runs")
    )


def changed(cell: Group, change: Change) -> Group:
    return replace(cell, trials=tuple(map(change, cell.trials)))


def served(model: str) -> Change:
    def change(trial: TrialResult) -> TrialResult:
        runs = (
            replace(run, completion=replace(run.completion, served_model=model))
            for run in trial.runs
        )
        return replace(trial, runs=tuple(runs))

    return change


def only() -> Series[Cell]:
    (series,) = read_history(Path(".upskill/runs")).series
    return series


def test_a_run_is_kept_without_answers_and_with_its_figures() -> None:
    whole = report(counted([(5, 0), (3, 2)]))

    kept = without_answers(whole)

    text = write_json(kept)
    assert "It is 37." not in text
    figures = json.loads(text)["entries"][0]["figures"]
    assert figures == json.loads(write_json(whole))["entries"][0]["figures"]
    assert figures["lift"]["estimate"] == pytest.approx(0.6)


def test_neither_are_an_agents_files_and_calls_kept_nor_what_a_trigger_test_said() -> None:
    whole = report(counted([(1, 0)], of=1))
    (gate,) = whole.gates
    done = AgentRun(
        version="1",
        changed=(WorkspaceFile(name="secret.txt", text="SECRET-FILE"),),
        calls=(ToolUse(name="bash", input="echo SECRET-CALL"),),
        turns=3,
    )

    def by_agent(trial: TrialResult) -> TrialResult:
        runs = (replace(r, completion=replace(r.completion, agent_run=done)) for r in trial.runs)
        return replace(trial, runs=tuple(runs))

    cell = changed(gate.cell, by_agent)
    asked = TriggerGate(cell=chosen([5]), outcome="passed", text="")

    text = write_json(
        without_answers(replace(whole, gates=(replace(gate, cell=cell),), trigger_gates=(asked,)))
    )

    assert '"turns": 3' in text
    assert "SECRET" not in text
    assert "It is 37." not in text


def test_an_empty_answer_of_the_history_is_still_a_miss() -> None:
    def emptied(trial: TrialResult) -> TrialResult:
        runs = (replace(run, completion=blank(run.completion)) for run in trial.runs)
        return replace(trial, runs=tuple(runs))

    def blank(completion: Completion) -> Completion:
        return replace(completion, text=" ")

    kept = without_answers(report(changed(counted([(5, 0)]), emptied)))

    assert [trial.passes for trial in kept.cells[0].trials] == [0, 0]


def test_the_same_run_is_one_file_and_runs_of_other_machines_are_added() -> None:
    for _ in range(2):
        log(counted([(5, 0)]), day=1)
    log(counted([(4, 0)]), day=1)

    assert len(list(Path(".upskill/runs").iterdir())) == 2
    assert len(only().points) == 2


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda t: replace(t, skill_digest="new" * bool(t.skill_digest)), None),
        (lambda t: replace(t, prompt_digest="new"), "prompts changed"),
        (lambda t: replace(t, grader_digest="new"), "checks changed"),
        (lambda t: replace(t, case=f"{t.case}-b"), "cases changed (+2, -2)"),
        (served("haiku-2"), "served model changed: haiku-1 to haiku-2"),
    ],
)
def test_a_line_breaks_where_something_but_the_skill_changed(
    change: Change, why: str | None
) -> None:
    cell = counted([(5, 0), (5, 0)])
    log(cell, day=1)
    log(changed(cell, change), day=2)
    log(changed(cell, change), day=3)

    assert only().breaks == ({} if why is None else {1: why})


def test_a_skill_that_ran_in_part_is_no_point(capsys: pytest.CaptureFixture[str]) -> None:
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
    assert max(map(len, out.splitlines())) <= 60
    assert out.splitlines() == [
        "skill: billing",
        "",
        "haiku",
        "  baseline   ████████████░░░░░░░░   60%",
        "  with skill ████████████████░░░░   80%  (+20%)",
        "",
        "  2026-01-01  aaaaaaa   60->80%  +20 [-22,+55]  too few runs",
        "  -- served model changed: haiku-1 to haiku-2",
        "  2026-01-02  bbbbbbb*  60->80%  +20 [-22,+55]  too few runs",
        "",
        "lift: in points of 100, with its 95 % interval",
        "*: with uncommitted changes",
    ]


def test_how_often_a_skill_is_chosen_has_a_line_of_its_own(
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
    assert max(map(len, out.splitlines())) <= 76
    assert out.splitlines()[8:15] == [
        "  recall     ░░░░░░░░░░░░░░░░░░░░   n/a",
        "  false      █████████████░░░░░░░   67%",
        "",
        "  2026-01-01  aaaaaaa  main            recall 90 [28,99.5]  false 20 [1,87]",
        "  2026-01-02  aaaaaaa  topic/of-a-...  recall 100 [34,100]  false 0 [0,79]",
        "  -- checks changed",
        "  2026-01-03  aaaaaaa  main            recall n/a           false 67 [21,94]",
    ]
    assert main(["runs", "--csv"]) == 0
    lift, first, *_ = csv.DictReader(io.StringIO(capsys.readouterr().out))
    assert (lift["kind"], lift["recall"], lift["lift"]) == ("lift", "", "0.2")
    assert (first["kind"], first["recall"], first["lift"]) == ("triggers", "0.9", "")
    assert main(["runs", "--html", "page.html"]) == 0
    page = Path("page.html").read_text("utf-8")
    assert page.count('<polyline class="line"') == 2
    assert page.count('<line class="break"') == 1


def test_the_terminal_can_show_tokens_and_fewer_runs(capsys: pytest.CaptureFixture[str]) -> None:
    for day in (1, 2, 3):
        log(counted([(5, 0)]), day=day)

    assert main(["runs", "--metric", "tokens", "--last", "1"]) == 0
    out = capsys.readouterr().out
    assert "  with skill ████████████████████   910  (+122%)\n" in out
    assert "  2026-01-03  aaaaaaa  410->910  +100 " in out
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
        (["-s", "bilink"], "the history has no skill 'bilink': did you mean 'billing'?"),
        (["-m", "gpt"], "the history has no model 'gpt': it has haiku"),
        (["-d", "nowhere"], "no runs yet: there is no folder nowhere: pytest-upskill eval *"),
        (["-d", "empty"], "no runs in empty; bad.json: not a report *: pytest-upskill eval *"),
        (["--last", "0"], "argument --last: '0' is not a number of runs: write 1 or more*"),
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
    log(changed(cell, served("@evil")), day=2, commit="b" * 40, dirty=True)

    assert main(["runs", "--csv"]) == 0
    first, second = csv.DictReader(io.StringIO(capsys.readouterr().out))
    assert (first["skill"], second["served"], second["dirty"]) == ("'=cmd()", "'@evil", "True")
    assert (first["lift"], first["break"]) == ("0.2", "")
    assert second["break"] == "served model changed: haiku-1 to @evil"


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


def test_pytest_keeps_a_history_where_the_ini_file_names_a_folder(
    run_once: Run,
    write_skill: WriteSkill,
    pytester: pytest.Pytester,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(pytester.path)
    pytester.makeini("[pytest]\nupskill_runs_dir = kept\n")
    folder = write_skill()
    commit = commit_all(pytester.path)
    git(pytester.path, "checkout", "--quiet", "-b", "topic")
    models = "--upskill-models=offline"

    run_once(models, "skills")
    (folder / "notes.md").write_text("new", "utf-8")
    run_once(models, "skills")
    run_once(models, "skills", "-o", "upskill_runs_dir=", "--upskill-json=r.json")

    (series,) = read_history(Path("kept")).series
    kept = sorted((p.revision for p in series.points if p.revision), key=lambda each: each.dirty)
    assert kept == [Revision(commit=commit, branch="topic", dirty=dirty) for dirty in (False, True)]
    assert read_json(Path("r.json").read_bytes()).sessions[0].revision is not None
    assert not Path(".upskill/runs").exists()


def test_without_git_a_run_has_no_revision(
    run_once: Run,
    write_skill: WriteSkill,
    pytester: pytest.Pytester,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(pytester.path)
    write_skill()

    run_once("--upskill-models=offline", "--upskill-log-runs", "skills")

    assert only().last.revision is None
    assert only().last.commit == ""
