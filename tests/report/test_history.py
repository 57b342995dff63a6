"""The history of runs: what is kept, and where a line of it breaks."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_upskill.commands.main import main
from pytest_upskill.report.files.json import read_json, write_json
from pytest_upskill.report.history.runs import read_history
from tests.conftest import Run, WriteSkill
from tests.git_repository import commit_all, git
from tests.report.logged_runs import Change, changed, log, only, served
from tests.reporting import counted, report

# Whose folder is empty, and the working directory.
pytestmark = pytest.mark.usefixtures("pytester")


def test_a_run_is_kept_without_answers_and_with_its_figures() -> None:
    cell = counted([(5, 0), (3, 2)])
    log(cell, day=1)

    (file,) = Path(".upskill/runs").iterdir()
    assert "It is 37." not in file.read_text("utf-8")
    figures = json.loads(write_json(report(cell)))["entries"][0]["figures"]
    kept = only().last.figures
    assert {name: figures[name] for name in ("verdict", "lift")} == {
        "verdict": kept["verdict"],
        "lift": pytest.approx(kept["lift"]),
    }
    assert kept["tokens.with"] == pytest.approx(figures["tokens.with"])


def test_a_run_of_twenty_cells_takes_ten_kilobytes() -> None:
    cases = [(5, 1)] * 10
    for skills, models, most in ((4, 5, 10_000), (20, 1, 15_000)):
        cells = [
            counted(cases, skill=f"skill-{skill}", model=f"model-{model}")
            for skill in range(skills)
            for model in range(models)
        ]
        log(*cells, day=skills)
        newest = max(Path(".upskill/runs").iterdir())
        assert newest.stat().st_size < most


def test_a_merged_report_is_a_run_too() -> None:
    Path(".upskill/runs").mkdir(parents=True)
    Path(".upskill/runs/merged.json").write_text(write_json(report(counted([(5, 0)]))), "utf-8")

    assert only().last.number("lift") == 1.0


def test_a_run_that_is_worse_than_the_one_before_is_marked(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for day, passes in ((1, 5), (2, 5), (3, 1)):
        log(counted([(passes, 0)] * 4), day=day)

    series = only()
    assert [series.is_worse(index) for index in range(3)] == [False, False, True]
    assert series.change == pytest.approx(-0.8)
    assert main(["runs", "--html", "page.html"]) == 0
    assert main(["runs"]) == 0
    assert capsys.readouterr().out.count("WORSE") == 1
    assert Path("page.html").read_text("utf-8").count('class="worse"') == 1


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
        pytest.param(lambda t: replace(t, prompt_digest="new"), "cases changed", id="prompt"),
        pytest.param(
            lambda t: replace(t, grader_digest="new" * (t.case == "case-2")),
            "cases changed",
            id="checks",
        ),
        pytest.param(lambda t: replace(t, case=f"{t.case}-b"), "cases changed", id="name"),
        (
            served("haiku-2"),
            "model changed: anthropic:haiku (haiku-1) to anthropic:haiku (haiku-2)",
        ),
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


def test_pytest_keeps_a_history_where_the_ini_file_names_a_folder(
    run_once: Run, write_skill: WriteSkill, pytester: pytest.Pytester
) -> None:
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
    kept = [point.run.revision for point in series.points]
    assert sorted(each.dirty for each in kept if each) == [False, True]
    assert {(each.commit, each.branch) for each in kept if each} == {(commit, "topic")}
    assert read_json(Path("r.json").read_bytes()).sessions[0].revision is not None
    assert not Path(".upskill/runs").exists()


def test_what_a_run_writes_itself_is_no_uncommitted_change(
    run_once: Run, write_skill: WriteSkill, model: str, pytester: pytest.Pytester
) -> None:
    write_skill()
    args = ("--upskill-cache-dir=recordings", "--upskill-baseline-update", "--upskill-json=r.json")
    run_once("--upskill-models", model, *args, "skills")
    pytester.path.joinpath("r.json").unlink()
    commit_all(pytester.path)
    (answer, *_) = pytester.path.glob("recordings/*/*.json")
    answer.write_text("{}", "utf-8")

    run_once("--upskill-models", model, *args, "--upskill-cache=refresh", "skills")

    revision = read_json(Path("r.json").read_bytes()).sessions[0].revision
    assert revision is not None
    assert not revision.dirty


def test_without_git_a_run_has_no_revision(run_once: Run, write_skill: WriteSkill) -> None:
    write_skill()

    run_once("--upskill-models=offline", "--upskill-log-runs", "skills")

    assert only().last.run.revision is None
    assert only().last.commit == ""
