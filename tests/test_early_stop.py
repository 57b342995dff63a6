from __future__ import annotations

import pytest

from tests import junit
from tests.conftest import Run, WriteSkill, budget_cases
from tests.loopback import Loopback
from tests.repository import commit_all

CASES = budget_cases(5)


def test_a_clear_verdict_leaves_the_other_rounds_out(
    run: Run, write_skill: WriteSkill, loopback: Loopback, model: str, pytester: pytest.Pytester
) -> None:
    write_skill(*CASES)

    result = run(
        f"--upskill-models={model}",
        "--upskill-runs=10",
        "--upskill-early-stop",
        "--junitxml=junit.xml",
        "skills",
    )

    assert result.ret == pytest.ExitCode.OK
    # The first look is at p = .03, the second at .0001: two rounds, five cases, two arms.
    assert len(loopback.requests) == 2 * 2 * len(CASES)
    result.stdout.fnmatch_lines(["*helps*", "early stop: the verdicts were clear without 80 *"])
    cases = junit.cases_of(pytester.path / "junit.xml").values()
    spared = {junit.properties(case)["upskill.runs.spared"] for case in cases}
    assert spared == {"8", "80"}


def test_an_open_verdict_takes_every_round(
    run_once: Run, write_skill: WriteSkill, loopback: Loopback, model: str
) -> None:
    write_skill(*CASES)
    loopback.answer = lambda _: "It is 37, as everybody knows."

    result = run_once(
        f"--upskill-models={model}",
        "--upskill-runs=3",
        "--upskill-early-stop",
        "skills",
    )

    assert result.ret == pytest.ExitCode.OK
    assert len(loopback.requests) == 3 * 2 * len(CASES)
    result.stdout.no_fnmatch_line("early stop:*")


@pytest.mark.needs("git")
def test_a_skill_no_worse_than_at_the_ref_needs_two_rounds(
    run: Run, write_skill: WriteSkill, loopback: Loopback, model: str, pytester: pytest.Pytester
) -> None:
    skill = write_skill(*CASES) / "SKILL.md"
    commit_all(pytester.path)
    skill.write_text(skill.read_text("utf-8") + "\nSay it in a sentence.\n", "utf-8")
    # As good without the skill: of its worth there would be no verdict yet.
    loopback.answer = lambda _: "It is 37, as everybody knows."

    result = run(
        f"--upskill-models={model}",
        "--upskill-runs=5",
        "--upskill-early-stop",
        "--upskill-compare=main",
        "skills",
    )

    assert result.ret == pytest.ExitCode.OK
    assert len(loopback.requests) == 2 * 3 * len(CASES)
    result.stdout.fnmatch_lines(["early stop: the verdicts were clear without 45 answers"])


@pytest.mark.needs("git")
def test_a_skill_no_worse_than_at_the_ref_may_hurt_all_the_same(
    run_once: Run,
    write_skill: WriteSkill,
    loopback: Loopback,
    model: str,
    pytester: pytest.Pytester,
) -> None:
    skill = write_skill(*(case | {"min_pass_rate": 0} for case in CASES)) / "SKILL.md"
    commit_all(pytester.path)
    skill.write_text(skill.read_text("utf-8") + "\nSay it in a sentence.\n", "utf-8")
    loopback.answer = lambda received: "No idea." if "37" in received.system else "It is 37."

    result = run_once(
        f"--upskill-models={model}",
        "--upskill-runs=5",
        "--upskill-early-stop",
        "--upskill-compare=main",
        "skills",
    )

    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["billing on m: the skill hurts (*"])
    assert len(loopback.requests) == 5 * 3 * len(CASES)


@pytest.mark.parametrize(
    ("option", "why"),
    [
        ("--upskill-compare=baseline", "--upskill-compare baseline needs all runs"),
        ("--upskill-baseline-update", "--upskill-baseline-update needs all runs"),
        ("--upskill-shard=1/2", "--upskill-shard would stop by the runs of one share"),
    ],
)
def test_what_needs_every_run_leaves_none_out(
    run_once: Run, write_skill: WriteSkill, option: str, why: str
) -> None:
    write_skill()

    result = run_once("--upskill-models=offline", "--upskill-early-stop", option, "skills")

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: --upskill-early-stop: {why}: leave one of the two out"])
