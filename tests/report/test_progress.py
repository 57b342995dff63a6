"""Progress in a log: when a long wait is a line, and what it says."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace

import pytest

from pytest_upskill.answers.progress import ASKING, JUDGING, InFlight, Tally, progress_parts
from pytest_upskill.grading.grade import Answer
from pytest_upskill.models import Completion
from pytest_upskill.session import progress
from tests.conftest import Run, WriteSkill
from tests.loopback import Loopback, Received, Reply

PATIENCE_S = 60.0
"""For what comes at once, on a machine that does other things too."""


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Show progress at once, not after seconds."""
    monkeypatch.setattr(progress, "REFRESH_S", 0.05)
    monkeypatch.setattr(progress, "FIRST_S", 0.0)


@pytest.fixture
def slow(loopback: Loopback, impatient: None) -> Loopback:
    """Answer late."""
    del impatient
    loopback.answer = lambda _: Reply(text="37", delay=0.3)
    return loopback


@pytest.fixture
def held(loopback: Loopback, impatient: None, monkeypatch: pytest.MonkeyPatch) -> Loopback:
    """Answer once something was said about it."""
    del impatient
    said = threading.Event()
    update = progress.Progress.update

    def update_and_note(line: progress.Progress) -> None:
        update(line)
        said.set()

    def answer(_: Received) -> Reply:
        assert said.wait(PATIENCE_S)
        return Reply(text="37")

    monkeypatch.setattr(progress.Progress, "update", update_and_note)
    loopback.answer = answer
    return loopback


def model(loopback: Loopback) -> str:
    return f"--upskill-models=m=openai:some@{loopback.openai_url}"


def answered(*, replayed: bool = False) -> Future[Answer]:
    future: Future[Answer] = Future()
    completion = Completion(text="", input_tokens=1, output_tokens=1, replayed=replayed)
    future.set_result(Answer(completion=completion))
    return future


def told(
    *answers: Future[Answer], activity: InFlight | None = None, paid: Sequence[float | None] = ()
) -> str:
    tally = Tally(answers)
    tally.count()
    completions = [
        Completion(text="", input_tokens=1, output_tokens=1, cost_usd=cost) for cost in paid
    ]
    return ", ".join(progress_parts(tally, activity or InFlight(), completions))


def test_where_there_is_no_terminal_a_long_wait_is_a_line_of_the_log(
    run: Run, write_skill: WriteSkill, held: Loopback
) -> None:
    write_skill()

    result = run(model(held), "skills")

    result.stdout.fnmatch_lines(["upskill: 0/2 answers*", "*[.+]*"])
    assert result.stdout.str().count("upskill: 0/2 answers") == 1
    assert result.ret == pytest.ExitCode.OK


def test_the_line_of_a_test_is_whole_after_a_wait(
    run_once: Run, write_skill: WriteSkill, held: Loopback
) -> None:
    write_skill()

    result = run_once(model(held), "-v", "skills")

    result.stdout.fnmatch_lines(
        ["upskill: 0/2 answers*", "skills/billing/skill_meta.json::budget?m-with_skill? PASSED *"]
    )


@pytest.mark.parametrize("arguments", [["-q"], ["-qq"], ["-p", "no:terminal"]])
def test_with_q_a_wait_is_not_reported(
    run_once: Run, write_skill: WriteSkill, slow: Loopback, arguments: list[str]
) -> None:
    write_skill()

    result = run_once(model(slow), *arguments, "skills")

    result.stdout.no_fnmatch_line("upskill: 0/2*")


def test_a_short_wait_is_not_reported(
    run_once: Run, write_skill: WriteSkill, loopback: Loopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "REFRESH_S", 0.01)
    loopback.answer = lambda _: Reply(text="37", delay=0.1)
    write_skill()

    result = run_once(model(loopback), "skills")

    result.stdout.no_fnmatch_line("upskill: 0/2*")


def test_without_capture_a_long_wait_is_reported_too(
    run_once: Run, write_skill: WriteSkill, held: Loopback
) -> None:
    write_skill()

    result = run_once(model(held), "-p", "no:capture", "skills")

    result.stdout.fnmatch_lines(["upskill: 0/2 answers*"])


def test_what_is_captured_of_a_test_holds_no_progress(
    run_once: Run, write_skill: WriteSkill, held: Loopback
) -> None:
    write_skill({"id": "red", "input": "Why?", "expected": {"contains": "unknown word"}})

    run_once(model(held), "--upskill-json=r.json", "--junitxml=j.xml", "skills")

    assert json.loads(Path("r.json").read_text("utf-8"))["entries"]
    assert "0/2 answers" not in Path("j.xml").read_text("utf-8")


def test_answers_and_dollars_are_counted() -> None:
    broken: Future[Answer] = Future()
    broken.set_exception(OSError())
    cancelled: Future[Answer] = Future()
    cancelled.cancel()

    line = told(answered(replayed=True), Future(), broken, cancelled, paid=[0.25, 0.5, 0.125])

    assert line == "upskill: 3/4 answers, $0.8750, 1 recorded"


def test_the_time_left_is_told_by_the_answers_and_judgements_so_far(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 0.0
    made_up = SimpleNamespace(monotonic=lambda: now)
    monkeypatch.setattr("pytest_upskill.answers.progress.time", made_up)
    running: list[Future[Answer]] = [Future() for _ in range(10)]
    tally = Tally(running, running[4:])
    activity = InFlight(clock=lambda: now)
    for future in running[:3]:
        future.set_result(Answer(completion=None))
    tally.count()
    now = 60.0

    with activity.doing(JUDGING):
        line = ", ".join(progress_parts(tally, activity, []))

    assert line == "upskill: 4/10 answers, 0/6 judged, about 3 min left"


def test_an_answer_counts_once_it_has_come() -> None:
    coming: Future[Answer] = Future()
    tally = Tally([coming])
    tally.count()
    before = tally.done

    coming.set_result(Answer(completion=None))
    tally.count()

    assert (before, tally.done) == (0, 1)


def test_a_price_that_is_not_known_is_not_guessed() -> None:
    assert told(answered(), answered(), paid=[0.25, None]) == "upskill: 2/2 answers"


def test_a_rate_limit_a_compiler_and_a_slow_answer_are_told_apart() -> None:
    now = 0.0
    activity = InFlight(clock=lambda: now)
    activity.pause("api.example.com", "rate limit", 26.5)

    with activity.doing(ASKING), activity.doing("compile"), activity.doing("run"):
        now = 15.0
        line = told(Future(), activity=activity)

    assert line == (
        "upskill: 0/1 answers, waiting 12 s for api.example.com (rate limit), compiling 1, "
        "running 1, 1 in flight (the oldest for 15 s)"
    )
