"""Cases that ask the same: each gets answers of its own."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_upskill.answers.recordings import request_fields
from pytest_upskill.cases.catalogue import Catalogue, Catalogues, ListedSkill
from pytest_upskill.cases.skill import Case, Skill, Trigger
from pytest_upskill.checks.files import WorkspaceFile
from pytest_upskill.checks.text import Contains
from pytest_upskill.models import parse_model
from pytest_upskill.models.parameters import Parameters
from pytest_upskill.trials.trial import Trial, plan, request_of
from tests.conftest import QUESTION, Run, WriteSkill
from tests.loopback import Loopback, Received


def trials(*cases: Case, models: tuple[str, ...] = ("m@http://127.0.0.1:9/v1",)) -> list[Trial]:
    skill = Skill(
        name="billing",
        description="Facts. Use when asked.",
        text="Facts.",
        case_file=Path("billing/skill_meta.json"),
        cases=cases,
    )
    skill = replace(skill, before=replace(skill, text="Old."))
    listed = ListedSkill(name="billing", description="Facts. Use when asked.")
    return list(
        plan(
            skill,
            [parse_model(model) for model in models],
            runs=2,
            min_pass_rate=1,
            max_tokens=9,
            catalogues=Catalogues(committed=Catalogue.of([listed]), root=Path()),
        )
    )


def case(name: str, **fields: Any) -> Case:
    return Case(id=name, input="Why?", checks=(Contains(text="because"),), **fields)


def draws(*cases: Case, models: tuple[str, ...] = ("m@http://127.0.0.1:9/v1",)) -> dict[str, int]:
    return {trial.name: trial.draw for trial in trials(*cases, models=models)}


@pytest.mark.parametrize("mode", ["auto", "off"])
def test_two_cases_that_ask_the_same_get_an_answer_each(
    run: Run, write_skill: WriteSkill, loopback: Loopback, mode: str
) -> None:
    # Given a model that is right every other time.
    tossed = Counter[bool]()

    def toss(received: Received) -> str:
        arm = "<skill" in received.system
        tossed[arm] += 1
        return "37" if tossed[arm] % 2 else "38"

    loopback.answer = toss
    same = {"input": QUESTION, "expected": {"contains": "37"}}
    write_skill({"id": "one", **same}, {"id": "other", **same})
    options = ("--upskill-models", f"m@{loopback.openai_url}", "skills", "-rA")

    # When it answers both cases, and again from recordings.
    first = run(*options, f"--upskill-cache={mode}")
    second = run(*options, "--upskill-cache=replay") if mode == "auto" else first

    # Then one of them passes in each arm, both times the same.
    assert tossed == {True: 2, False: 2}
    for result in (first, second):
        result.assert_outcomes(passed=4, failed=1)
    failed = [
        [line for line in result.outlines if line.startswith("FAILED")]
        for result in (first, second)
    ]
    assert failed[0] == failed[1]


def test_the_first_of_cases_that_ask_the_same_is_recorded_like_an_only_one() -> None:
    one, other = (
        request_fields(request_of(trial, run=0), "http://127.0.0.1:9/v1")
        for trial in trials(case("one"), case("other"))
        if trial.arm == "with_skill"
    )

    assert "draw" not in one
    assert other == {**one, "draw": 1}


def test_all_arms_of_a_case_have_the_same_draw() -> None:
    yes = Trigger(should=True)

    found = draws(case("one", trigger=yes), case("two", trigger=yes), case("three", trigger=yes))

    of_case = {
        name: {draw for trial, draw in found.items() if trial.startswith(f"{name}[")}
        for name in ("one", "two", "three")
    }
    assert of_case == {"one": {0}, "two": {1}, "three": {2}}
    assert {name.rpartition("-")[2] for name in found} == {
        "with_skill]", "without_skill]", "old_skill]", "trigger]"
    }  # fmt: skip


def test_every_run_of_cases_that_ask_the_same_sends_another_seed() -> None:
    seeded = replace(parse_model("m@http://127.0.0.1:9/v1"), parameters=Parameters(seed=7))

    seeds = [
        request_of(replace(trial, model=seeded), run).seed
        for trial in trials(case("one"), case("two"))
        if trial.arm == "with_skill"
        for run in range(2)
    ]

    assert seeds[:2] == [7, 8]
    assert len({*seeds}) == 4


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (
            case("one", files=(WorkspaceFile(name="a", text="1"),)),
            case("two", files=(WorkspaceFile(name="a", text="2"),)),
        ),
        (case("one", models=("m",)), case("two", models=("n",))),
        (case("one", models=("other",)), case("two")),
        (
            case("one", workspace=(WorkspaceFile(name="a", text="1"),)),
            case("two", workspace=(WorkspaceFile(name="a", text="2"),)),
        ),
    ],
    ids=["files", "models", "a model that is not chosen", "workspace"],
)
def test_cases_that_send_different_requests_share_none(first: Case, second: Case) -> None:
    models = "m@http://127.0.0.1:9/v1", "n@http://127.0.0.1:9/v1"

    assert {*draws(first, second, models=models).values()} == {0}


def test_the_queries_of_a_model_without_a_workspace_are_alike_whatever_the_workspace() -> None:
    cases = [
        case(name, trigger=Trigger(should=True), workspace=(WorkspaceFile(name=name, text="1"),))
        for name in ("one", "two")
    ]

    found = draws(*cases)

    assert (found["two[m-trigger]"], found["two[m-with_skill]"]) == (1, 0)
