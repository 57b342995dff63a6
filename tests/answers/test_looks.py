"""Runs added to recorded ones: a further look at the verdict, at a stricter level."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from tests.conftest import Run, WriteSkill, recordings
from tests.loopback import Loopback, Received, Reply

FIRST, ALL = {"with": 3, "without": 0}, {"with": 7, "without": 2}
"""Passes in the first five runs, p = .083, and in all ten, p = .038."""

ADDED = "*helps or hurts needs at most 1.3 %, as runs were added to recorded ones (look 2)"


@pytest.fixture
def options(write_skill: WriteSkill, loopback: Loopback) -> tuple[str, ...]:
    """Return the arguments that run a skill whose model never gives one text twice."""
    asked = Counter[tuple[str, str]]()

    def answer(received: Received) -> Reply:
        arm = "with" if "<skill" in received.system else "without"
        asked[arm, received.user] += 1
        number = asked[arm, received.user]
        passes = number <= FIRST[arm] if number <= 5 else number - 5 <= ALL[arm] - FIRST[arm]
        return Reply(text=f"{'right' if passes else 'wrong'} ({number})")

    loopback.answer = answer
    write_skill({"id": "dates", "input": "?", "expected": {"contains": "right"}}, name="csv")
    return (
        "skills",
        f"--upskill-models=haiku=haiku-1@{loopback.openai_url}",
        "--upskill-json=report.json",
    )


def verdict() -> str:
    entries = json.loads(Path("report.json").read_text())["entries"]
    return " ".join(entry["figures"]["verdict"] for entry in entries)


def test_ten_runs_at_once_are_judged_by_the_level_of_a_first_look(
    run_once: Run, options: tuple[str, ...]
) -> None:
    run_once(*options, "--upskill-runs=10")

    assert verdict() == "helps"


@pytest.mark.parametrize("replay", [(), ("--upskill-cache=replay",)])
def test_runs_added_to_recorded_ones_are_judged_by_a_stricter_level_and_so_is_a_replay(
    run: Run, options: tuple[str, ...], loopback: Loopback, replay: tuple[str, ...]
) -> None:
    run(*options, "--upskill-runs=5")
    assert verdict() == "too few runs"

    run(*options, "--upskill-runs=10").stdout.fnmatch_lines([ADDED])
    assert verdict() == "too few runs"

    run(*options, "--upskill-runs=10", *replay).stdout.fnmatch_lines([ADDED])
    assert verdict() == "too few runs"
    assert len(loopback.requests) == 2 * 10


def test_an_answer_that_is_missing_is_requested_for_the_look_that_planned_it(
    run_once: Run, options: tuple[str, ...]
) -> None:
    run_once(*options, "--upskill-runs=10")
    looks = {json.loads(file.read_text())["completion"]["look"]["number"] for file in recordings()}
    assert looks == {1}
    for file in recordings():
        if json.loads(file.read_text())["request"]["run"] >= 7:
            file.unlink()

    result = run_once(*options, "--upskill-runs=10")

    result.stdout.no_fnmatch_line("*look 2*")


def test_fewer_runs_than_recorded_are_judged_by_their_own_look(
    run_once: Run, options: tuple[str, ...]
) -> None:
    run_once(*options, "--upskill-runs=5")
    run_once(*options, "--upskill-runs=10")

    result = run_once(*options, "--upskill-runs=5")

    result.stdout.no_fnmatch_line("*look 2*")


def test_an_early_stop_spends_the_level_of_its_look(
    run_once: Run, options: tuple[str, ...]
) -> None:
    run_once(*options, "--upskill-runs=5")

    result = run_once(*options, "--upskill-runs=11", "--upskill-early-stop")

    result.stdout.fnmatch_lines(["*helps or hurts needs *at most 0.99 %*"])
