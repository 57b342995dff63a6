"""How many requests a host gets at a time."""

from __future__ import annotations

import asyncio

import pytest

from pytest_upskill.answers.retry import Pace, Slot
from pytest_upskill.models import Completion, ProviderError
from tests.answers.retrying import Clock, Host, client_of, later, outcomes, pace_of, request


def too_many() -> ProviderError:
    return ProviderError("m: HTTP 429 slow down", status=429)


def sent(pace: Pace) -> Slot:
    """Send a request in a slot of its own."""

    async def send() -> Slot:
        async with pace.slot() as one:
            return one

    return asyncio.run(send())


def test_no_more_requests_than_slots_are_in_flight() -> None:
    host, clock = Host(), Clock()
    client = client_of(host, clock, pace=pace_of(3, clock))

    outcomes(*(client.complete(request(run)) for run in range(20)))

    assert (len(host.requests), host.peak) == (20, 3)


def test_a_slot_is_free_while_its_request_waits_to_be_sent_again() -> None:
    host, clock = Host(script=[later()]), Clock()
    client = client_of(host, clock, pace=pace_of(1, clock))

    outcomes(client.complete(request(run=0)), client.complete(request(run=1)))

    assert [each.run for each in host.requests] == [0, 1, 0]


def test_cancelling_gives_the_slot_back() -> None:
    host, clock = Host(), Clock()
    client = client_of(host, clock, pace=pace_of(1, clock))

    async def cancel_one_and_ask() -> Completion:
        task = asyncio.ensure_future(client.complete(request()))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return await client.complete(request())

    assert asyncio.run(cancel_one_and_ask()).text == "ok"


def test_requests_refused_together_cut_the_slots_once() -> None:
    host, clock = Host(script=[too_many() for _ in range(10)]), Clock()
    pace = pace_of(10, clock)
    client = client_of(host, clock, pace=pace)
    outcomes(*(client.complete(request(run)) for run in range(10)))
    cut, before, host.peak = pace.width, host.peak, 0

    outcomes(*(client.complete(request(run)) for run in range(10)))

    assert (before, cut, host.peak) == (10, 8, 8)


def test_refusals_that_go_on_cut_down_to_one() -> None:
    clock = Clock()
    pace = pace_of(10, clock)

    for _ in range(30):
        pace.refused()
        clock.now += 15

    assert pace.width == 1


def test_answers_grow_the_width_back_and_not_beyond() -> None:
    clock = Clock()
    pace = pace_of(10, clock)
    pace.refused()

    grown = []
    for _ in range(40):
        pace.answered(sent(pace))
        grown.append(pace.width)

    assert grown[:7] == [8] * 7
    assert grown[7:16] == [9] * 9
    assert set(grown[16:]) == {10}


def test_timeouts_without_any_answer_halve_the_width_once_for_all_in_flight() -> None:
    clock = Clock()
    pace = pace_of(10, clock)
    together = [sent(pace) for _ in range(10)]
    clock.now += 120

    for slot in together:
        pace.timed_out(slot)
    clock.now += 1
    again = sent(pace)
    clock.now += 120
    pace.timed_out(again)

    assert pace.width == 2


def test_a_timeout_leaves_the_width_of_a_host_that_answers_others() -> None:
    clock = Clock()
    pace = pace_of(10, clock)
    late, other = sent(pace), sent(pace)
    pace.answered(other)
    clock.now += 120

    pace.timed_out(late)

    assert pace.width == 10
