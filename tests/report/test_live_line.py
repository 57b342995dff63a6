"""Pytest on a pseudo-terminal, and what a reader of its screen sees."""

from __future__ import annotations

import os
import re
import signal
import threading
from collections.abc import Callable, Iterator

import pytest

from pytest_upskill.figures.wording import fit_parts
from tests.conftest import UNTESTED_PLUGINS, WriteSkill
from tests.loopback import Loopback, Received, Reply
from tests.screen import PATIENCE_S, Screen

Start = Callable[..., Screen]


@pytest.fixture
def start(pytester: pytest.Pytester, write_skill: WriteSkill) -> Iterator[Start]:
    """Start pytest on a skill, on a screen."""
    write_skill()
    started: list[Screen] = []

    def start(*arguments: str, columns: int = 80, rows: int = 50, **variables: str) -> Screen:
        command = ["pytest", *UNTESTED_PLUGINS, *arguments, "skills"]
        screen = Screen(command, pytester.path, columns=columns, rows=rows, **variables)
        started.append(screen)
        return screen

    yield start
    for screen in started:
        screen.close()


@pytest.fixture
def seen(loopback: Loopback) -> Iterator[threading.Event]:
    """Make the server answer the second half of a run's requests only once this event is set."""
    event = threading.Event()

    def answer(received: Received) -> Reply:
        if "37" not in received.system:
            event.wait(PATIENCE_S)
        return Reply(text="37")

    loopback.answer = answer
    yield event
    event.set()


def model(loopback: Loopback) -> str:
    return f"--upskill-models=m=openai:some@{loopback.openai_url}"


@pytest.mark.parametrize("processes", [["-p", "no:xdist"], ["-n2"]])
def test_a_rate_limit_is_shown_and_counted_down(
    start: Start, loopback: Loopback, processes: list[str]
) -> None:
    seen = threading.Event()
    limit = Reply(status=429, headers={"retry-after": "1"})
    loopback.answer = lambda _: Reply(text="37") if seen.is_set() else limit

    screen = start(model(loopback), *processes)
    line = screen.wait_for("rate limit")
    seen.set()
    after = screen.wait_for_the_end()

    host = loopback.url.removeprefix("http://")
    # 2 s if a busy machine missed the first pause.
    assert re.match(rf"upskill: 0/2 answers, waiting [12] s for {host} \(rate limit\)", line)
    assert not any("rate limit" in line for line in after)
    assert any(line.startswith("upskill: 2 trials, ") for line in after)
    assert screen.process.wait() == 0


def test_on_a_narrow_terminal_the_line_has_only_what_fits(start: Start, loopback: Loopback) -> None:
    seen = threading.Event()
    limit = Reply(status=429, headers={"retry-after": "2"})
    loopback.answer = lambda _: Reply(text="37") if seen.is_set() else limit

    screen = start(model(loopback), "-p", "no:xdist", columns=60)
    screen.wait_for("upskill: 0/2 answers")
    seen.set()
    screen.wait_for_the_end()

    assert b"waiting" not in screen.written


@pytest.mark.parametrize("rows", [50, 4])
def test_the_line_is_below_the_letters_and_gone_after_the_wait(
    start: Start, loopback: Loopback, seen: threading.Event, rows: int
) -> None:
    screen = start(model(loopback), "-p", "no:xdist", "--no-summary", rows=rows)
    live = screen.wait_for("1/2 answers, 1 in flight")
    before = screen.lines
    seen.set()
    screen.wait_for("gates:")
    after = screen.wait_for_the_end()

    assert live == "upskill: 1/2 answers, 1 in flight"
    assert before[before.index(live) - 1] == "skills/billing/skill_meta.json ."
    assert not any("in flight" in line for line in after)


def test_with_v_the_line_of_a_test_stays_whole_over_several_rows(
    start: Start, loopback: Loopback, seen: threading.Event
) -> None:
    screen = start(model(loopback), "-p", "no:xdist", "-v", columns=50)
    screen.wait_for("1/2 answers, 1 in flight")
    seen.set()
    after = "".join(screen.wait_for_the_end())

    assert "skill_meta.json::budget[m-without_skill] BASELINE PASS" in after


def test_the_line_is_gone_after_an_interruption(
    start: Start, loopback: Loopback, seen: threading.Event
) -> None:
    screen = start(model(loopback), "-p", "no:xdist")
    screen.wait_for("1/2 answers, 1 in flight")
    os.kill(screen.process.pid, signal.SIGINT)
    after = screen.wait_for_the_end()

    assert not seen.is_set()
    assert not any("in flight" in line for line in after)
    assert screen.process.wait() == pytest.ExitCode.INTERRUPTED


@pytest.mark.parametrize(("arguments", "terminal"), [(["-q"], "xterm"), ([], "dumb")])
def test_the_line_is_not_shown_where_it_is_not_wanted_or_impossible(
    start: Start, loopback: Loopback, arguments: list[str], terminal: str
) -> None:
    loopback.answer = lambda _: Reply(text="37", delay=1.0)

    screen = start(model(loopback), "-p", "no:xdist", *arguments, TERM=terminal)
    screen.wait_for_the_end()

    assert screen.process.wait() == 0
    assert b"in flight" not in screen.written


@pytest.mark.parametrize(
    ("columns", "plan"),
    [
        (60, ["upskill: 2 trials, 2 answers: 0 recorded, 2 to request"]),
        (50, ["upskill: 2 trials, 2 answers: 0 recorded, 2 to", "  request"]),
    ],
)
def test_a_long_line_is_broken_between_words(start: Start, columns: int, plan: list[str]) -> None:
    screen = start("--upskill-models=offline", columns=columns, rows=100)
    after = screen.wait_for_the_end()

    place = after.index(plan[0])
    assert after[place : place + len(plan)] == plan


def test_with_workers_the_plan_begins_a_line(start: Start) -> None:
    after = start("--upskill-models=offline", "-n2").wait_for_the_end()

    assert "upskill: 1 case: 1 by code" in after
    assert "upskill: 2 trials, 2 answers: 0 recorded, 2 to request" in after


def test_parts_that_do_not_fit_are_left_out_from_the_end() -> None:
    parts = ["upskill: 3/9 answers", "waiting 12 s for a.example (rate limit)", "2 recorded"]

    assert fit_parts(parts, 79) == ", ".join(parts)
    assert fit_parts(parts, 70) == ", ".join(parts[:2])
    assert fit_parts(parts, 60) == parts[0]
    assert fit_parts(parts, 10) == ""


def test_a_wide_character_takes_two_columns() -> None:
    assert fit_parts(["a", "\u4e2d\u6587"], 7) == "a, \u4e2d\u6587"
    assert fit_parts(["a", "\u4e2d\u6587"], 6) == "a"


def test_the_name_of_a_host_cannot_move_the_cursor() -> None:
    assert fit_parts(["upskill: 3/9 answers", "waiting for \x1b[2J"], 79).endswith("\\x1b[2J")
