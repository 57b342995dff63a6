"""``--upskill-baseline-runs``: the arm without the skill may have more runs than the other."""

from __future__ import annotations

import json
from itertools import count
from pathlib import Path

import pytest

from tests.conftest import Run, WriteSkill
from tests.figures.conftest import LENIENT, UPDATE
from tests.loopback import Loopback, Received, Reply


@pytest.fixture
def options(write_skill: WriteSkill, loopback: Loopback) -> tuple[str, ...]:
    """Return the arguments that run a skill with which every third answer is right."""
    with_skill = count()

    def answer(received: Received) -> Reply:
        right = "<skill" in received.system and next(with_skill) % 3 == 0
        return Reply(text=f"{'right' if right else 'wrong'} ({len(loopback.requests)})")

    loopback.answer = answer
    write_skill({"id": "dates", "input": "?", "expected": {"contains": "right"}}, name="csv")
    model = f"--upskill-models=haiku=haiku-1@{loopback.openai_url}"
    return ("skills", model, LENIENT, "--upskill-json=r.json")


def test_further_versions_of_a_skill_reuse_the_runs_without_it(
    options: tuple[str, ...], run_once: Run, loopback: Loopback
) -> None:
    runs = ("--upskill-runs=2", "--upskill-baseline-runs=10")

    first = run_once(*options, *runs)
    asked = len(loopback.requests)
    skill = Path("skills/csv/SKILL.md")
    skill.write_text(skill.read_text("utf-8") + "More.\n", "utf-8")
    run_once(*options, *runs)

    first.stdout.fnmatch_lines(
        ["upskill: haiku * runs: 2, 10 without the skill", "*2 trials, 12 answers: *"]
    )
    assert (asked, len(loopback.requests) - asked) == (12, 2)
    figures = json.loads(Path("r.json").read_text())["entries"][0]["figures"]
    assert [figures[name] for name in ("runs.with", "runs.without")] == [2, 10]


def test_the_advice_keeps_the_share_of_the_arms(
    options: tuple[str, ...], run_once: Run, write_skill: WriteSkill, loopback: Loopback
) -> None:
    def answer(received: Received) -> Reply:
        right = "<skill" in received.system
        return Reply(text=f"{'right' if right else 'wrong'} ({len(loopback.requests)})")

    loopback.answer = answer
    expected = {"expected": {"contains": "right"}}
    write_skill(*({"input": f"{number}?", **expected} for number in range(4)), name="csv")

    result = run_once(*options, "--upskill-runs=1", "--upskill-baseline-runs=3")

    (line,) = (line for line in result.outlines if line.startswith("too few runs on "))
    with_, without = (
        int(line.partition(f"{option} ")[2].split()[0])
        for option in ("--upskill-runs", "--upskill-baseline-runs")
    )
    assert without == 3 * with_ > 3


def test_a_baseline_has_the_runs_of_each_arm(options: tuple[str, ...], run_once: Run) -> None:
    run_once(*options, "--upskill-runs=2", "--upskill-baseline-runs=4", UPDATE)

    (file,) = Path(".upskill/baselines").rglob("haiku.json")
    (case,) = json.loads(file.read_text())["cases"]
    assert [case[arm]["runs"] for arm in ("with_skill", "without_skill")] == [2, 4]
