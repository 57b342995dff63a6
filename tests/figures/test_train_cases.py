"""Cases that a skill was written or chosen with: they run, but do not enter its lift."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_upskill.answers.early_stop import Rounds
from pytest_upskill.cases.skill import Case
from pytest_upskill.checks.text import Contains
from pytest_upskill.grading.grade import Answer
from pytest_upskill.models import Completion
from pytest_upskill.stats import CaseCounts
from pytest_upskill.trials.result import TrialResult
from tests.conftest import Run, WriteSkill, budget_cases
from tests.planning import planned
from tests.reporting import cell, run, trial


def test_a_train_case_runs_and_can_fail_but_is_left_out_of_the_lift(
    write_skill: WriteSkill, run_once: Run, model: str
) -> None:
    held_out, train = budget_cases(2)
    unknown = {"id": "known", "input": "37?", "expected": {"contains": "No idea"}, "train": True}
    write_skill(held_out, train | {"train": True}, unknown)

    result = run_once(
        "skills", f"--upskill-models={model}", "--upskill-runs=5", "--upskill-json=out.json"
    )

    result.assert_outcomes(passed=6, failed=1)
    result.stdout.fnmatch_lines(["*billing on m: 2 train cases are left out of the lift"])
    (entry,) = json.loads(Path("out.json").read_text("utf-8"))["entries"]
    assert entry["figures"]["lift"] == 1
    assert entry["figures"]["pass_rate.with"] == 1


def test_a_missing_run_lets_no_train_case_into_the_bounds_of_the_pass_rate() -> None:
    held_out = trial("held-out", "with_skill", [run(False)] * 3 + [run()], errors=("HTTP 529",))
    chosen_by = replace(trial("train", "with_skill", [run()] * 5), train=True)
    others = [trial(case, "without_skill", [run(False)] * 5) for case in ("held-out", "train")]

    figures = cell(held_out, chosen_by, *others)

    bounds = [figures.lift.pass_rate_if(for_skill=lucky) for lucky in (False, True)]
    assert bounds == pytest.approx([0.2, 0.4])


def test_tokens_are_those_of_the_cases_that_enter_the_lift() -> None:
    def with_and_without(case: str, *, train: bool, tokens: int) -> list[TrialResult]:
        long = trial(case, "with_skill", [run(tokens=tokens)] * 5)
        short = trial(case, "without_skill", [run(False, tokens=10)] * 5)
        return [replace(each, train=train) for each in (long, short)]

    held_out = with_and_without("held-out", train=False, tokens=30)
    chosen_by = with_and_without("train", train=True, tokens=1000)
    figures = cell(*held_out, *chosen_by)

    assert figures.lift.token_ratio == pytest.approx(2)
    assert figures.lift.arms["without_skill"].tokens_per_pass is None
    assert figures.lift.arms["with_skill"].tokens_per_pass == 40


def test_train_cases_do_not_stop_the_runs_early() -> None:
    case = Case(id="held-out", input="Why?", checks=(Contains(text="because"),))
    trials = planned(
        case, replace(case, id="train", train=True), model="haiku", runs=2, early_stop=True
    )
    seen: list[int] = []

    def clear(cases: Sequence[CaseCounts], done: int, planned: int, alpha: float) -> None:
        del done, planned, alpha
        seen.append(len(cases))

    async def answered() -> Answer:
        return Answer(completion=Completion(text="because", input_tokens=1, output_tokens=1))

    async def play() -> None:
        rounds = Rounds(trials, clear)
        await asyncio.gather(*(rounds.answer(t, run, answered) for run in (0, 1) for t in trials))
        rounds.close()

    asyncio.run(play())

    assert seen == [1]
