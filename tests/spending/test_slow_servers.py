"""Servers with few slots: no answer is lost to a timeout that fewer requests would have met."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from tests.conftest import Run, WriteSkill, budget_cases
from tests.loopback import Loopback, Received, Reply, know
from tests.spending.slow_server import SlowServer, run


@pytest.mark.parametrize("seconds", [5, 40, 55, 70, 115])
@pytest.mark.parametrize("slots", [1, 2, 4])
def test_a_slow_server_loses_no_answer_and_no_time(slots: int, seconds: int) -> None:
    session = run(SlowServer(slots, lambda _: seconds), 60)

    assert (session.answered, session.wasted) == (60, 0)
    assert session.seconds == 60 / slots * seconds


@pytest.mark.parametrize("slots", [1, 2, 4])
def test_what_a_server_works_on_is_not_cancelled_however_long_it_waited(slots: int) -> None:
    for seed in range(10):
        lengths = random.Random(7 * seed + slots)
        seconds = [min(110, lengths.expovariate(1 / 30)) for _ in range(60)]
        session = run(SlowServer(slots, seconds.__getitem__), 60)

        assert (session.answered, session.wasted) == (60, 0)


def test_a_server_with_many_slots_gets_all_requests_that_are_allowed() -> None:
    assert run(SlowServer(64, lambda _: 5), 100).peak == 20


def test_a_server_with_many_slots_gets_more_requests_although_its_answers_take_long() -> None:
    session = run(SlowServer(64, lambda _: 80), 60)

    assert session.peak > 10
    assert session.seconds < 0.6 * 60 / 4 * 80


def test_a_server_with_few_slots_gets_few_requests_that_wait() -> None:
    assert run(SlowServer(2, lambda _: 40), 60).peak == 5


def test_answers_that_no_timeout_would_meet_do_not_hold_the_others_up() -> None:
    server = SlowServer(2, lambda run: 1000 if run == 7 else 10)

    session = run(server, 60)

    assert session.answered == 59
    assert session.seconds < 300 + 5 * 120


def test_a_server_that_never_replies_is_given_up_on_after_three_timeouts() -> None:
    session = run(SlowServer(2, lambda _: 10**6), 60)

    assert (session.answered, session.wasted) == (0, 1)
    assert session.seconds < 4 * 120
    assert session.errors == {
        (
            "m: no reply from a.invalid within 120 s: raise --upskill-timeout, or lower "
            "--upskill-max-tokens (after 3 attempts in 362 s)"
        )
    }


def test_a_server_of_ones_own_starts_with_four_requests(
    run_once: Run, write_skill: WriteSkill, loopback: Loopback, model: str
) -> None:
    write_skill(*budget_cases(4))
    peaks = []

    def answer(received: Received) -> Reply:
        peaks.append(loopback.peak)
        return replace(know(received), delay=0.2)

    loopback.answer = answer
    run_once("--upskill-models", model, "skills")

    # The fifth of eight is sent once one of the first has its answer.
    assert peaks[3:5] == [4, 4]
