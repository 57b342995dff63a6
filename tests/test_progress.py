from __future__ import annotations

import json
from concurrent.futures import Future

import pytest

from pytest_upskill.completion import Completion
from pytest_upskill.grade import Answer
from pytest_upskill.report import progress
from tests.conftest import Run, WriteSkill
from tests.loopback import Loopback, Reply


@pytest.fixture
def slow(loopback: Loopback, monkeypatch: pytest.MonkeyPatch) -> Loopback:
    """Answer late, and speak of it early."""
    loopback.answer = lambda _: Reply(text="37", delay=0.3)
    monkeypatch.setattr(progress, "QUIET_S", {True: 0.05, False: 0.05})
    return loopback


def model(loopback: Loopback) -> str:
    return f"--upskill-models=m=openai:some@{loopback.openai_url}"


def answered(cost: float | None = 0.25, *, replayed: bool = False) -> Future[Answer]:
    future: Future[Answer] = Future()
    completion = Completion(
        text="", input_tokens=1, output_tokens=1, cost_usd=cost, replayed=replayed
    )
    future.set_result(Answer(completion=completion))
    return future


def test_a_long_wait_says_what_is_waited_for(
    run_once: Run, write_skill: WriteSkill, slow: Loopback
) -> None:
    write_skill()

    result = run_once(model(slow), "skills")

    result.stdout.fnmatch_lines(
        [
            "skills/billing/skill_meta.json *",
            "upskill: 0 of 2 answers, 0 recorded, * waiting 0 s for *::budget?m-with_skill?",
            ".+. *",
        ],
    )


def test_the_line_of_a_test_is_whole_after_a_wait(
    run_once: Run, write_skill: WriteSkill, slow: Loopback
) -> None:
    write_skill()

    result = run_once(model(slow), "-v", "skills")

    result.stdout.fnmatch_lines(
        ["upskill: *", "skills/billing/skill_meta.json::budget?m-with_skill? PASSED *"]
    )


@pytest.mark.parametrize("arguments", [["-q"], ["-qq"], ["-p", "no:terminal"]])
def test_whoever_asked_for_quiet_waits_in_quiet(
    run_once: Run, write_skill: WriteSkill, slow: Loopback, arguments: list[str]
) -> None:
    write_skill()

    result = run_once(model(slow), *arguments, "skills")

    result.stdout.no_fnmatch_line("*waiting*")


def test_no_wait_no_word(run_once: Run, write_skill: WriteSkill) -> None:
    write_skill()

    result = run_once("--upskill-models=offline", "skills")

    result.stdout.no_fnmatch_line("*waiting*")


def test_what_is_captured_of_a_test_holds_no_progress(
    run_once: Run, write_skill: WriteSkill, slow: Loopback, pytester: pytest.Pytester
) -> None:
    write_skill({"id": "red", "input": "Why?", "expected": {"contains": "no such word"}})

    run_once(model(slow), "--upskill-json=r.json", "--junitxml=j.xml", "skills")

    assert json.loads((pytester.path / "r.json").read_text("utf-8"))["entries"]
    assert "waiting" not in (pytester.path / "j.xml").read_text("utf-8")


def test_with_xdist_and_without_the_state_is_told(
    run: Run, write_skill: WriteSkill, slow: Loopback
) -> None:
    write_skill()

    result = run(model(slow), "skills")

    result.stdout.fnmatch_lines(["*upskill: * of 2 answers, 0 recorded, *"])
    assert result.ret == pytest.ExitCode.OK


def test_the_state_counts_answers_and_dollars() -> None:
    broken: Future[Answer] = Future()
    broken.set_exception(OSError())
    answers = [
        answered(),
        answered(0.5),
        answered(9.0, replayed=True),
        Future(),
        Future(),
        broken,
    ]

    assert progress.state(answers, begun=5) == "4 of 6 answers, 1 recorded, 1 in flight, $0.7500"


def test_a_price_that_is_not_known_is_not_guessed() -> None:
    assert progress.state([answered(None)], begun=1).endswith("0 in flight, cost n/a")
