"""Servers with few slots: no answer is lost to a timeout that fewer requests would have met."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from tests.answers.slow_server import SharedServer, SlowServer, run
from tests.conftest import Run, WriteSkill, budget_cases
from tests.loopback import Loopback, Received, Reply, know


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


@pytest.mark.parametrize("seed", range(10))
def test_a_queue_in_random_order_loses_no_answer(seed: int) -> None:
    session = run(SlowServer(2, lambda _: 40, order=random.Random(seed)), 60)

    assert session.answered == 60
    assert session.seconds <= 1.5 * 60 / 2 * 40


@pytest.mark.parametrize("work", [5, 8, 20])
def test_a_server_that_gets_slower_with_each_request_gets_fewer_and_answers_all(work: int) -> None:
    session = run(SharedServer(work), 60)

    assert session.answered == 60
    assert session.seconds <= (1.5 if work <= 8 else 2) * 60 * work


@pytest.mark.parametrize("seconds", [5, 80])
def test_a_server_with_many_slots_gets_all_requests_that_are_allowed(seconds: int) -> None:
    session = run(SlowServer(64, lambda _: seconds), 100)

    assert (session.peak, session.seconds) == (20, 100 / 20 * seconds)


def test_a_request_that_is_never_answered_does_not_hold_the_others_up() -> None:
    server = SlowServer(4, lambda run: 10**6 if run == 7 else 10)

    session = run(server, 60)

    assert session.answered == 59
    assert session.seconds < 59 / 3 * 10 + 5 * 120


def test_a_server_that_never_replies_is_given_up_on_after_three_timeouts() -> None:
    session = run(SlowServer(2, lambda _: 10**6), 60)

    assert (session.answered, session.wasted) == (0, 1)
    assert session.seconds < 4 * 120
    assert session.errors == {
        (
            "m: no reply from a.invalid within 120 s: raise --upskill-timeout, lower "
            "--upskill-concurrency or --upskill-max-tokens (after 3 attempts in 360 s)"
        )
    }


def test_a_server_of_ones_own_gets_all_requests_that_are_allowed_at_once(
    run_once: Run, write_skill: WriteSkill, loopback: Loopback, model: str
) -> None:
    write_skill(*budget_cases(4))
    peaks = []

    def answer(received: Received) -> Reply:
        peaks.append(loopback.peak)
        return replace(know(received), delay=0.2)

    loopback.answer = answer
    run_once("--upskill-models", model, "skills")

    assert max(peaks) == 8
