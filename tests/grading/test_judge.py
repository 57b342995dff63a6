"""Statements are put to a judge model, once, blind, and at a cost of their own."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import chain, repeat
from pathlib import Path

import pytest

from pytest_upskill.report.exit_code import NOT_MEASURED
from tests import junit
from tests.conftest import QUESTION, Run, WriteSkill, recordings
from tests.loopback import Loopback, Received, Reply

ANSWER = "It is 37 attempts, says the skill."
CASE = {"id": "a", "input": QUESTION, "expected": {"judge": ["It names a number.", "It is kind."]}}
Judge = Callable[[Received], Reply]
Judged = Callable[[Judge], tuple[str, ...]]


def verdicts(*holds: bool, quote: str = "37 attempts") -> Judge:
    return lambda _received: Reply(text=said(*holds, quote=quote))


def said(*holds: bool, quote: str = "37 attempts") -> str:
    entries = [
        {"statement": number, "quote": quote, "reason": "as quoted", "holds": each}
        for number, each in enumerate(holds, 1)
    ]
    return json.dumps({"verdicts": entries})


@pytest.fixture
def models(loopback: Loopback) -> tuple[str, ...]:
    url = loopback.openai_url
    return ("skills", f"--upskill-models=m=model@{url}", f"--upskill-judge=j=judge@{url}")


def serve(loopback: Loopback, judge: Judge, answer: str = ANSWER) -> None:
    def reply(received: Received) -> Reply:
        return judge(received) if is_judgement(received) else Reply(text=answer)

    loopback.answer = reply


@pytest.fixture
def judged(write_skill: WriteSkill, loopback: Loopback, models: tuple[str, ...]) -> Judged:
    """Write the case and serve a judge; return the arguments that run the one with the other."""

    def judged(judge: Judge) -> tuple[str, ...]:
        write_skill(CASE)
        serve(loopback, judge)
        return models

    return judged


def is_judgement(received: Received) -> bool:
    return bool(received.body["model"] in {"judge", "other-judge"})


def test_a_statement_that_does_not_hold_fails_the_case(run: Run, judged: Judged) -> None:
    result = run(*judged(verdicts(True, False)))

    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(
        ["judge 'It is kind.': does not hold: as quoted", "1 of 2 checks passed"]
    )


def test_reports_have_the_cost_of_the_judge_too(run_once: Run, judged: Judged) -> None:
    run_once(*judged(verdicts(True, True)), "--upskill-md=r.md", "--upskill-html=r.html")

    for page in ("r.md", "r.html"):
        text = Path(page).read_text("utf-8")
        assert "judge: requested" in text


def test_one_answer_is_judged_once_for_all_statements_and_arms(
    run_once: Run, loopback: Loopback, judged: Judged
) -> None:
    result = run_once(*judged(verdicts(True, True)), "--upskill-runs=3")

    result.assert_outcomes(passed=3)
    judgements = [received for received in loopback.requests if is_judgement(received)]
    assert len(judgements) == 1
    assert "<skill" not in judgements[0].system + judgements[0].user


def test_what_another_judge_decided_is_not_compared(
    run_once: Run, loopback: Loopback, judged: Judged
) -> None:
    models = judged(verdicts(True, True))
    run_once(*models, "--upskill-baseline-update")

    same = run_once(*models, "--upskill-compare=baseline")
    another = f"--upskill-judge=j=other-judge@{loopback.openai_url}"
    other = run_once(*models, another, "--upskill-compare=baseline")

    said = "billing on m: not compared, changed since the baseline: a"
    assert said not in same.outlines
    assert said in other.outlines


def test_a_judgement_is_replayed_and_counted_apart(
    run_once: Run, loopback: Loopback, judged: Judged
) -> None:
    models = judged(verdicts(True, True))
    run_once(*models)
    asked = len(loopback.requests)

    result = run_once(*models, "--upskill-cache=replay")

    result.assert_outcomes(passed=3)
    assert len(loopback.requests) == asked
    result.stdout.fnmatch_lines(["replayed 2 answers: *", "judge: replayed 2 answers: *"])


@pytest.mark.parametrize(
    "judge",
    [lambda _received: Reply(status=400), verdicts(True, True, quote="never said that")],
    ids=["refused", "no evidence"],
)
def test_without_a_usable_judgement_the_run_is_missing(
    run_once: Run, judged: Judged, judge: Judge
) -> None:
    result = run_once(*judged(judge))

    outcomes = result.parseoutcomes()
    assert outcomes.get("failed", 0) == 0
    assert outcomes["errors"] >= 1
    result.stdout.fnmatch_lines(["judge: *"])


def test_without_a_judge_a_statement_neither_holds_nor_fails(
    run_once: Run, write_skill: WriteSkill, loopback: Loopback, models: tuple[str, ...]
) -> None:
    expected = {"contains": "37", "judge": "It is kind."}
    write_skill(CASE | {"expected": expected}, CASE | {"id": "b"})
    serve(loopback, verdicts())

    files = ("--upskill-md=report.md", "--upskill-html=report.html", "--junitxml=junit.xml")
    result = run_once(*models[:2], "-v", "-rs", *files)

    result.assert_outcomes(passed=3, skipped=2)
    ungraded = "judge: 1 statement is ungraded"
    result.stdout.fnmatch_lines([f"{ungraded}: name a model with *"])
    assert all(ungraded in Path(f"report.{kind}").read_text("utf-8") for kind in ("md", "html"))
    gate = junit.properties(junit.cases_of(Path("junit.xml"))["gate[m]"])
    assert gate["upskill.ungraded"] == "1"
    run_once(*models[:2], "-q").stdout.fnmatch_lines([f"{ungraded}: name a model with *"])
    result.stdout.fnmatch_lines(
        ["SKIPPED *: has only statements for a judge: add --upskill-judge MODEL"]
    )
    assert not any(is_judgement(received) for received in loopback.requests)


def test_the_plan_counts_judgements(
    run_once: Run, write_skill: WriteSkill, loopback: Loopback, models: tuple[str, ...]
) -> None:
    write_skill(CASE)

    result = run_once(*models, "--upskill-dry-run")

    result.stdout.fnmatch_lines(["upskill: 2 trials, 2 answers: *; up to 4 to judge, cost n/a"])
    assert loopback.requests == []


@pytest.mark.parametrize(
    ("judge", "message"),
    [
        ("offline", "--upskill-judge: offline is not a language model and cannot *"),
        ("what", "--upskill-judge: cannot tell the host of model 'what'*"),
        ("haiku", "*ANTHROPIC_API_KEY*"),
    ],
)
def test_a_judge_that_cannot_judge_is_a_usage_error(
    run_once: Run, write_skill: WriteSkill, judge: str, message: str
) -> None:
    write_skill(CASE)

    result = run_once("--upskill-models=offline", f"--upskill-judge={judge}", "skills")

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: {message}"])


def test_pruning_keeps_judgements(run_once: Run, judged: Judged) -> None:
    models = judged(verdicts(True, True))
    run_once(*models)
    before = recordings()

    run_once(*models, "--upskill-cache-prune")

    assert recordings() == before
    assert len(before) == 3


def test_a_reply_that_is_no_judgement_is_not_recorded(
    run_once: Run, loopback: Loopback, judged: Judged
) -> None:
    models = judged(lambda _: Reply(text="I am sorry, I"))

    sorry = run_once(*models)
    serve(loopback, verdicts(True, True))
    well = run_once(*models)

    assert sorry.ret == NOT_MEASURED
    assert well.ret == pytest.ExitCode.OK
    well.stdout.fnmatch_lines(["replayed 2 answers: *", "judge: requested 1 answer: *"])


def test_an_unusable_judgement_is_asked_for_once_more_and_both_are_paid_for(
    run_once: Run, write_skill: WriteSkill, loopback: Loopback, models: tuple[str, ...]
) -> None:
    write_skill(CASE)
    replies = iter([Reply(text="I am sorry, I"), Reply(text=said(True, True))])
    serve(loopback, lambda _: next(replies))

    result = run_once(*models)
    replayed = run_once(*models, "--upskill-cache=replay")

    result.assert_outcomes(passed=3)
    result.stdout.fnmatch_lines(["judge: requested 2 answers: *"])
    replayed.assert_outcomes(passed=3)


@pytest.mark.parametrize("usable", [0, 4])
def test_a_judge_without_a_usable_judgement_three_times_in_a_row_is_given_up(
    run: Run,
    write_skill: WriteSkill,
    loopback: Loopback,
    models: tuple[str, ...],
    usable: int,
) -> None:
    write_skill(*(CASE | {"id": str(n), "input": f"{QUESTION} {n}"} for n in range(15)))
    judgements = chain(
        (Reply(text=said(True, True)) for _ in range(usable)), repeat(Reply(text="I am sorry, I"))
    )

    def answer(received: Received) -> Reply:
        if is_judgement(received):
            return next(judgements)
        return Reply(text=f"{ANSWER} {'With it' if '<skill' in received.system else received.user}")

    loopback.answer = answer

    result = run(*models, "--upskill-concurrency=1")

    # Each answer is judged twice; what is in flight when the judge is given up still arrives.
    asked = sum(map(is_judgement, loopback.requests))
    assert usable + 6 <= asked <= usable + 8
    assert result.ret == NOT_MEASURED
    cause = "it has no JSON object: choose a stronger model with --upskill-judge, or raise judge:max_tokens"  # noqa: E501
    lines = [line for line in result.outlines if line.startswith("judge: openai:judge gave no ")]
    assert len(lines) == 1
    assert "after two attempts, and was not asked about " in lines[0]
    assert lines[0].endswith(f"; for example, {cause}")
    given_up = "judge: given up after 3 answers in a row without a usable judgement: "
    assert f"{given_up}{cause}" in result.stdout.str()


def test_a_judge_that_recovers_is_not_given_up(
    run_once: Run, write_skill: WriteSkill, loopback: Loopback, models: tuple[str, ...]
) -> None:
    write_skill(*(CASE | {"id": str(n), "input": f"{QUESTION} {n}"} for n in range(4)))
    bad, good = Reply(text="I am sorry, I"), Reply(text=said(True, True))
    judgements = chain([bad] * 4, [good], [bad] * 4, repeat(good))

    def answer(received: Received) -> Reply:
        if is_judgement(received):
            return next(judgements)
        return Reply(text=f"{ANSWER} {received.system} {received.user}")

    loopback.answer = answer

    result = run_once(*models, "--upskill-concurrency=1")

    assert "given up" not in result.stdout.str()
    result.stdout.fnmatch_lines(
        ["judge: openai:judge gave no usable judgement on 4 of 8 answers *"]
    )
