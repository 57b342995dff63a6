"""Rounds of runs, and the look at the verdict after each."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from pytest_upskill.answers.early_stop import Rounds
from pytest_upskill.cases.skill import Case, Skill
from pytest_upskill.checks.cpu_limit import CallProcess
from pytest_upskill.checks.text import Contains, Regex, TextCheck
from pytest_upskill.grading.grade import Answer, grade
from pytest_upskill.models import Completion, parse_model
from pytest_upskill.stats import CaseCounts
from pytest_upskill.trials.trial import Trial, plan


def trials(
    *, cases: int = 2, runs: int = 3, check: TextCheck | None = None, name: str = "billing"
) -> list[Trial]:
    skill = Skill(
        name=name,
        text="Facts.",
        case_file=Path("evals/evals.json"),
        folder=Path("skills", name),
        cases=tuple(
            Case(id=f"case-{n}", input="Why?", checks=(check or Contains(text="because"),))
            for n in range(cases)
        ),
    )
    model = parse_model("haiku")
    return list(plan(skill, [model], runs=runs, min_pass_rate=1.0, max_tokens=100, early_stop=True))


def answer(text: str) -> Answer:
    return Answer(completion=Completion(text=text, input_tokens=1, output_tokens=1))


async def ask_all(
    rounds: Rounds,
    asked: Sequence[Trial],
    runs: int,
    repeats: Callable[[int], bool] = lambda _: False,
) -> list[tuple[str, int]]:
    done: list[tuple[str, int]] = []

    async def ask(trial: Trial, run: int) -> None:
        async def reply() -> Answer:
            done.append((trial.name, run))
            text = "because" if trial.arm == "with_skill" else "no idea"
            return answer(f"{text} {'' if repeats(run) else run}")

        await rounds.answer(trial, run, reply)

    await asyncio.gather(*(ask(trial, run) for run in range(runs) for trial in asked))
    return done


def test_every_round_runs_while_the_verdict_is_open() -> None:
    asked = trials()

    done = asyncio.run(ask_all(Rounds(asked, lambda *_: None), asked, runs=3))

    assert [run for _, run in done] == [0] * 4 + [1] * 4 + [2] * 4


def test_no_run_of_a_later_round_is_asked_once_the_verdict_is_clear() -> None:
    asked = trials(runs=5)
    looks: list[tuple[int, int]] = []

    def clear(counts: Sequence[CaseCounts], rounds: int, planned: int, _: float) -> str | None:
        looks.append((rounds, planned))
        assert counts == [CaseCounts(rounds, rounds, 0, rounds)] * 2
        return "helps" if rounds == 2 else None

    done = asyncio.run(ask_all(Rounds(asked, clear), asked, runs=5))

    assert [run for _, run in done] == [0] * 4 + [1] * 4
    assert looks == [(1, 5), (2, 5)]


@pytest.mark.parametrize(
    ("varied_from", "rounds"), [(1, 2), (2, 3), (3, 4), (9, 5)], ids=["1", "2", "3", "never"]
)
def test_rounds_that_repeat_one_answer_are_not_enough_to_stop(
    varied_from: int, rounds: int
) -> None:
    asked = trials(runs=5)

    def clear(_: Sequence[CaseCounts], done: int, *__: float) -> str | None:
        return "helps" if done > 1 else None

    done = asyncio.run(
        ask_all(Rounds(asked, clear), asked, runs=5, repeats=lambda run: run < varied_from)
    )

    assert len(done) == 4 * rounds


def test_each_skill_of_a_shared_case_file_stops_by_its_own_verdict() -> None:
    asked = [*trials(name="helps"), *trials(name="useless")]
    done: Counter[str] = Counter()

    async def ask_all() -> None:
        rounds = Rounds(
            asked,
            lambda counts, *_: "helps" if all(each.passes_with for each in counts) else None,
        )

        async def ask(trial: Trial, run: int) -> None:
            async def reply() -> Answer:
                done[trial.skill.name] += 1
                return answer("because" if trial.skill.name == "helps" else "no idea")

            await rounds.answer(trial, run, reply)

        await asyncio.gather(*(ask(trial, run) for run in range(3) for trial in asked))

    asyncio.run(ask_all())

    assert done == {"helps": 4, "useless": 12}


def test_a_run_without_a_reply_ends_the_rounds_only_if_no_reply_could_have_kept_them() -> None:
    asked = trials(cases=1, runs=2)
    missing_with, missing_both = CaseCounts(0, 0, 0, 1), CaseCounts(0, 0, 0, 0)

    async def reply(fails: bool) -> Answer:
        return Answer(completion=None, error="HTTP 500") if fails else answer("no idea")

    async def ask(open_case: CaseCounts, *fails: bool) -> list[bool]:
        rounds = Rounds(asked, lambda counts, *_: None if counts == [open_case] else "futile")
        for trial, each in zip(asked, fails, strict=True):
            await rounds.answer(trial, 0, partial(reply, each))
        return [(await rounds.answer(t, 1, partial(reply, False))).not_needed for t in asked]

    assert asyncio.run(ask(missing_with, True, False)) == [False, False]
    assert asyncio.run(ask(CaseCounts(1, 1, 0, 1), True, False)) == [False, False]
    assert asyncio.run(ask(missing_both, True, False)) == [True, True]
    assert asyncio.run(ask(missing_both, True, True)) == [False, False]


def test_trouble_in_one_run_holds_up_no_round() -> None:
    asked = trials(cases=1, runs=2)

    async def crash() -> Answer:
        raise OSError("the disk is full")

    async def ask() -> list[Answer]:
        rounds = Rounds(asked, lambda *_: None)
        for trial in asked:
            with pytest.raises(OSError, match="full"):
                await rounds.answer(trial, 0, crash)

        async def reply() -> Answer:
            return answer("because")

        return [await rounds.answer(trial, 1, reply) for trial in asked]

    assert [answer.not_needed for answer in asyncio.run(ask())] == [False, False]


def play_all(asked: Sequence[Trial], texts: Mapping[str, str]) -> list[Answer]:
    """Play the first round; return what came of each trial."""

    async def play() -> list[Answer]:
        rounds = Rounds(asked, lambda *_: "helps")

        async def reply(trial: Trial) -> Answer:
            return answer(texts[trial.arm])

        try:
            return [await rounds.answer(trial, 0, partial(reply, trial)) for trial in asked]
        finally:
            rounds.close()

    return asyncio.run(play())


def test_the_item_does_not_repeat_the_checks_that_a_round_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = trials(cases=1, check=Regex(pattern=r"be\w+"))
    texts = {"with_skill": "because", "without_skill": "no idea"}

    played = play_all(asked, texts)
    monkeypatch.delattr(Regex, "check")
    results = [grade(trial, [each]) for trial, each in zip(asked, played, strict=True)]

    assert [result.passes for result in results] == [1, 0]


def test_one_process_makes_the_searches_of_all_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[object] = []
    popen = subprocess.Popen

    def count(*args: Any, **kwargs: Any) -> subprocess.Popen[bytes]:
        started.append(args)
        return popen(*args, **kwargs)

    monkeypatch.setattr(subprocess, "Popen", count)
    texts = {"with_skill": "because", "without_skill": "no idea"}

    played = play_all(trials(cases=3, check=Regex(pattern="because")), texts)

    assert [each.checked is not None for each in played] == [True] * 6
    assert len(started) == 1


def test_a_search_without_end_is_missing_data_and_the_next_is_made() -> None:
    asked = trials(cases=1, check=Regex(pattern="(a+)+$"))

    slow, swift = play_all(asked, {"with_skill": "a" * 40 + "!", "without_skill": "aaa"})

    assert "took over 1 s" in slow.error
    assert swift.checked is not None
    assert [check.passed for check in swift.checked] == [True]


def test_a_process_that_was_killed_costs_one_answer_its_early_check() -> None:
    worker = CallProcess()

    with pytest.raises(RuntimeError, match="died"):
        worker.call(os._exit, 1)

    assert worker.call(abs, -1) == 1
    worker.close()
