from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from pytest_upskill.checks import Contains
from pytest_upskill.completion import Completion
from pytest_upskill.grade import Answer
from pytest_upskill.models import parse_model
from pytest_upskill.plan import Arm, Trial, plan
from pytest_upskill.rounds import Rounds
from pytest_upskill.skill import Case, Skill
from pytest_upskill.stats import CaseCounts


def trials(*, cases: int = 2, runs: int = 3) -> list[Trial]:
    skill = Skill(
        name="billing",
        text="Facts.",
        case_file=Path("skills/billing/skill_meta.json"),
        cases=tuple(
            Case(id=f"case-{n}", input="Why?", checks=(Contains(text="because"),))
            for n in range(cases)
        ),
    )
    model = parse_model("offline")
    return list(plan(skill, [model], runs=runs, min_pass_rate=1.0, max_tokens=100))


def answer(text: str) -> Answer:
    return Answer(completion=Completion(text=text, input_tokens=1, output_tokens=1))


async def ask_all(rounds: Rounds, asked: Sequence[Trial], runs: int) -> list[tuple[str, int]]:
    done: list[tuple[str, int]] = []

    async def ask(trial: Trial, run: int) -> None:
        async def reply() -> Answer:
            done.append((trial.name, run))
            return answer("because" if trial.arm == "with_skill" else "no idea")

        await rounds.play(trial, run, reply)

    await asyncio.gather(*(ask(trial, run) for run in range(runs) for trial in asked))
    return done


def test_every_round_runs_while_the_verdict_is_open() -> None:
    asked = trials()

    done = asyncio.run(ask_all(Rounds(asked, lambda *_: False), asked, runs=3))

    assert [run for _, run in done] == [0] * 4 + [1] * 4 + [2] * 4


def test_no_run_of_a_later_round_is_asked_once_the_verdict_is_clear() -> None:
    asked = trials(runs=5)
    looks: list[tuple[int, int]] = []

    def clear(counts: Mapping[Arm, Sequence[CaseCounts]], rounds: int, planned: int) -> bool:
        looks.append((rounds, planned))
        assert counts == {"without_skill": [CaseCounts(rounds, rounds, 0, rounds)] * 2}
        return rounds == 2

    done = asyncio.run(ask_all(Rounds(asked, clear), asked, runs=5))

    assert [run for _, run in done] == [0] * 4 + [1] * 4
    assert looks == [(1, 5), (2, 5)]


def test_a_run_without_a_reply_counts_in_no_round() -> None:
    asked = trials(cases=1, runs=2)
    seen: list[CaseCounts] = []

    def clear(counts: Mapping[Arm, Sequence[CaseCounts]], _: int, __: int) -> bool:
        seen.extend(counts["without_skill"])
        return True

    async def fail() -> Answer:
        return Answer(completion=None, error="HTTP 500")

    async def ask() -> list[Answer]:
        rounds = Rounds(asked, clear)
        for trial in asked:
            await rounds.play(trial, 0, fail)
        return [await rounds.play(trial, 1, fail) for trial in asked]

    assert [answer.needless for answer in asyncio.run(ask())] == [True, True]
    assert seen == [CaseCounts(0, 0, 0, 0)]


def test_trouble_in_one_run_holds_up_no_round() -> None:
    asked = trials(cases=1, runs=2)

    async def crash() -> Answer:
        raise OSError("the disk is full")

    async def ask() -> list[Answer]:
        rounds = Rounds(asked, lambda *_: False)
        for trial in asked:
            with pytest.raises(OSError, match="full"):
                await rounds.play(trial, 0, crash)

        async def reply() -> Answer:
            return answer("because")

        return [await rounds.play(trial, 1, reply) for trial in asked]

    assert [answer.needless for answer in asyncio.run(ask())] == [False, False]
