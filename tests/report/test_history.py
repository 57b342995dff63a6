"""The history of runs: what is kept, and where a line of it breaks."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_upskill.checks.files import WorkspaceFile
from pytest_upskill.figures.gate import Gate
from pytest_upskill.models import AgentRun, AgentTurn, Completion, ToolUse
from pytest_upskill.project.git import Revision
from pytest_upskill.report.files.json import read_json, write_json
from pytest_upskill.report.history.runs import read_history, without_answers
from pytest_upskill.trials.result import TrialResult
from tests.conftest import Run, WriteSkill
from tests.git_repository import commit_all, git
from tests.report.logged_runs import Change, changed, log, only, served
from tests.reporting import chosen, counted, report

# Whose folder is empty, and the working directory.
pytestmark = pytest.mark.usefixtures("pytester")


def test_a_run_is_kept_without_answers_and_with_its_figures() -> None:
    whole = report(counted([(5, 0), (3, 2)]))

    kept = without_answers(whole)

    text = write_json(kept)
    assert "It is 37." not in text
    figures = json.loads(text)["entries"][0]["figures"]
    assert figures == json.loads(write_json(whole))["entries"][0]["figures"]
    assert figures["lift"] == pytest.approx(0.6)


def test_neither_an_agents_files_and_calls_nor_replies_to_queries_are_kept() -> None:
    whole = report(counted([(1, 0)], of=1))
    (gate,) = whole.gates
    done = AgentRun(
        version="1",
        changed=(WorkspaceFile(name="secret.txt", text="SECRET-FILE"),),
        turns=(
            AgentTurn(
                text="SECRET-WORD",
                calls=(ToolUse(name="bash", input="echo SECRET-CALL", result="SECRET-RESULT"),),
            ),
        ),
    )

    def by_agent(trial: TrialResult) -> TrialResult:
        runs = (replace(r, completion=replace(r.completion, agent_run=done)) for r in trial.runs)
        return replace(trial, runs=tuple(runs))

    cell = changed(gate.cell, by_agent)
    asked = Gate(cell=chosen([5]), outcome="passed", text="")

    text = write_json(without_answers(replace(whole, gates=(replace(gate, cell=cell), asked))))

    assert '"name": "bash"' in text
    assert "SECRET" not in text
    assert "It is 37." not in text


def test_an_empty_answer_of_the_history_is_still_a_miss() -> None:
    def emptied(trial: TrialResult) -> TrialResult:
        runs = (replace(run, completion=blank(run.completion)) for run in trial.runs)
        return replace(trial, runs=tuple(runs))

    def blank(completion: Completion) -> Completion:
        return replace(completion, text=" ")

    kept = without_answers(report(changed(counted([(5, 0)]), emptied)))

    assert [trial.passes for trial in kept.gates[0].cell.trials] == [0, 0]


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
    kept = sorted((p.revision for p in series.points if p.revision), key=lambda each: each.dirty)
    assert kept == [Revision(commit=commit, branch="topic", dirty=dirty) for dirty in (False, True)]
    assert read_json(Path("r.json").read_bytes()).sessions[0].revision is not None
    assert not Path(".upskill/runs").exists()


def test_without_git_a_run_has_no_revision(run_once: Run, write_skill: WriteSkill) -> None:
    write_skill()

    run_once("--upskill-models=offline", "--upskill-log-runs", "skills")

    assert only().last.revision is None
    assert only().last.commit == ""
