"""A model that gives one answer in all runs: the runs are copies, so one counts."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Run, WriteSkill, budget_cases
from tests.loopback import Loopback, Received, Reply, know
from tests.reporting import counted

COPIES = "*the model gave one answer in all runs of every trial, so one run counts: add cases, *"


@pytest.fixture
def options(write_skill: WriteSkill, loopback: Loopback) -> tuple[str, ...]:
    """Return the arguments that run a skill on a server that never varies its answers."""
    loopback.answer = know
    write_skill(*budget_cases(3))
    return (
        "skills",
        f"--upskill-models=m=openai:small@{loopback.openai_url}",
        "--upskill-json=report.json",
    )


def figures() -> dict[str, Any]:
    entry = json.loads(Path("report.json").read_text())["entries"][0]
    figures: dict[str, Any] = entry["figures"]
    return figures


def test_more_runs_of_one_answer_change_no_figure(run: Run, options: tuple[str, ...]) -> None:
    run(*options)
    once = figures()

    result = run(*options, "--upskill-runs=5", "--upskill-md=r.md")

    result.stdout.fnmatch_lines([COPIES])
    assert ", once in each arm: " in Path("r.md").read_text("utf-8")
    assert figures()["verdict"] == once["verdict"] == "too few runs"
    assert figures()["lift"] == once["lift"]
    assert figures()["runs.with"] == once["runs.with"] == 3


def test_runs_count_if_any_trial_has_two_answers(
    run_once: Run, options: tuple[str, ...], loopback: Loopback
) -> None:
    loopback.replies.append(Reply(text="37, I think"))

    result = run_once(*options, "--upskill-runs=5")

    result.stdout.no_fnmatch_line(COPIES)
    assert figures()["verdict"] == "helps"


def test_a_missing_run_would_have_been_a_copy_too(
    run_once: Run, options: tuple[str, ...], loopback: Loopback
) -> None:
    def answer(received: Received) -> Reply:
        return Reply(status=400) if len(loopback.requests) == 3 else know(received)

    loopback.answer = answer

    run_once(*options, "--upskill-runs=2").stdout.fnmatch_lines([COPIES])

    assert figures()["runs.with"] == figures()["runs.without"] == 3


def test_a_baseline_has_the_run_that_counts(run_once: Run, options: tuple[str, ...]) -> None:
    run_once(*options, "--upskill-runs=5", "--upskill-baseline-update")

    baselines = Path(".upskill/baselines")
    (file,) = (path for path in baselines.rglob("*.json") if path.is_file())
    cases = json.loads(file.read_text())["cases"]
    assert [case["with_skill"] for case in cases] == [{"passes": 1, "runs": 1}] * 3


def test_a_failed_case_says_how_it_did_before(
    run_once: Run, options: tuple[str, ...], write_skill: WriteSkill
) -> None:
    run_once(*options, "--upskill-runs=5", "--upskill-baseline-update")
    write_skill(*budget_cases(3), body="Nothing.\n")

    result = run_once(*options, "--upskill-runs=5", "--upskill-compare=baseline")

    told = "passed 1/1 runs with the skill at the baseline"
    result.stdout.fnmatch_lines(["*0 of 5 runs passed*", told])


def test_runs_with_an_old_version_of_the_skill_are_copies_too() -> None:
    trials = [replace(trial, distinct=1) for trial in counted([(5, 0)], of=5).trials]
    old = replace(trials[0], arm="old_skill")
    cell = replace(counted([(5, 0)], of=5), trials=(*trials, old))

    varied = replace(cell, trials=(*trials, replace(old, distinct=2)))
    assert [len(trial.runs) for trial in cell.old_trials] == [1]
    assert [len(trial.runs) for trial in varied.old_trials] == [5]


def test_offline_always_makes_one_run(run_once: Run, write_skill: WriteSkill) -> None:
    write_skill(*budget_cases(5))
    options = ("skills", "--upskill-models=offline", "--upskill-json=report.json")

    result = run_once(*options, "--upskill-runs=3")

    result.stdout.fnmatch_lines(["*runs: 3; 1 for offline, as further runs would be copies"])
    assert figures()["runs.with"] == 5
