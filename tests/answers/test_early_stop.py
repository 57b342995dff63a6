"""``--upskill-early-stop`` in a run: what is spared, and what forbids it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import junit
from tests.conftest import Run, WriteSkill, budget_cases
from tests.git_repository import commit_all
from tests.loopback import Loopback
from tests.scripted_model import Script

CASES = budget_cases(5)


def test_a_clear_verdict_leaves_the_other_rounds_out(
    run: Run, write_skill: WriteSkill, loopback: Loopback, model: str
) -> None:
    write_skill(*CASES)

    result = run(
        f"--upskill-models={model}",
        "--upskill-runs=5",
        "--upskill-early-stop",
        "--junitxml=junit.xml",
        "skills",
    )

    assert result.ret == pytest.ExitCode.OK
    # The first look is at p = .03, the second at .0001: two rounds, five cases, two arms.
    assert len(loopback.requests) == 2 * 2 * len(CASES)
    result.stdout.fnmatch_lines(
        ["*helps*", "*stopped after 2 of 5 rounds, as the verdict is clear*"]
    )
    cases = junit.cases_of(Path("junit.xml")).values()
    spared = {junit.properties(case)["upskill.runs.spared"] for case in cases}
    assert spared == {"3", "30"}


def test_a_case_whose_runs_disagree_is_neither_green_nor_red(run_once: Run, script: Script) -> None:
    clear = {f"clear{number}": "+++++ -----" for number in range(4)}
    args = script(**clear, mixed="+-+++ -----", never="----- -----")

    result = run_once(*args, "--upskill-runs=5", "--upskill-early-stop", "-rs")

    result.stdout.fnmatch_lines(
        ["*helps, 1 failed*", "SKIPPED * 1 of 2 runs passed, and --upskill-early-stop requested*"]
    )
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert result.parseoutcomes()["failed"] == 1


def test_a_skill_that_helps_is_green_though_a_run_of_a_case_failed_before_it_stopped(
    run_once: Run, script: Script
) -> None:
    clear = {f"clear{number}": "+++++ -----" for number in range(4)}
    args = script(**clear, mixed="+-+++ -----", other="-+--- -----")

    result = run_once(*args, "--upskill-runs=5", "--upskill-early-stop")

    assert result.ret == pytest.ExitCode.OK
    assert result.parseoutcomes()["skipped"] == 2


def test_a_least_lift_takes_every_round(
    run_once: Run, write_skill: WriteSkill, loopback: Loopback, model: str
) -> None:
    write_skill(*CASES, gate={"min_lift": 0.2})

    result = run_once(
        f"--upskill-models={model}", "--upskill-runs=4", "--upskill-early-stop", "skills"
    )

    assert result.ret == pytest.ExitCode.OK
    assert len(loopback.requests) == 4 * 2 * len(CASES)


@pytest.mark.needs("git")
@pytest.mark.parametrize(
    "option",
    [
        "--upskill-compare=HEAD",
        "--upskill-baseline-update",
        "--upskill-min-lift=0",
        "--upskill-baseline-runs=4",
    ],
)
def test_options_that_need_every_run_exclude_early_stop(
    run_once: Run, write_skill: WriteSkill, pytester: pytest.Pytester, option: str
) -> None:
    write_skill()
    commit_all(pytester.path)

    result = run_once("--upskill-models=offline", "--upskill-early-stop", option, "skills")

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    other = option.partition("=")[0]
    problem = f"ERROR: --upskill-early-stop: {other} needs all runs: leave one of the two out"
    result.stderr.fnmatch_lines([problem])
