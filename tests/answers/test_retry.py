"""Temporary errors are retried, with growing pauses."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from itertools import cycle

import pytest

from pytest_upskill.answers.progress import ASKING, InFlight
from pytest_upskill.models import Completion, ProviderError
from pytest_upskill.models.clients import make_client
from pytest_upskill.models.keys import endpoints
from tests.answers.retrying import (
    ANSWER,
    Clock,
    Host,
    client_of,
    later,
    outcome,
    outcomes,
    request,
)
from tests.loopback import Loopback, Reply
from tests.sdk_requests import every_sdk, model_at, request_to


def test_a_temporary_error_is_retried_and_every_attempt_counted() -> None:
    host, clock = Host(script=[later(), later()]), Clock()

    (answer,) = outcomes(client_of(host, clock).complete(request()))

    assert isinstance(answer, Completion)
    assert answer.attempts == 3
    assert len(host.requests) == 3


def test_a_permanent_error_is_not_retried() -> None:
    host, clock = Host(script=[ProviderError("m: HTTP 400 no", status=400)]), Clock()

    error = outcome(client_of(host, clock).complete(request()))

    assert str(error) == "m: HTTP 400 no"
    assert (len(host.requests), clock.slept) == (1, [])


def test_pauses_double_with_jitter_up_to_the_longest() -> None:
    host, clock = Host(script=[later() for _ in range(6)]), Clock()

    outcome(client_of(host, clock).complete(request()))

    bounds = [(0.5, 1), (1, 1.5), (2, 2.5), (4, 4.5), (8, 8), (8, 8)]
    assert all(low <= s <= high for s, (low, high) in zip(clock.slept, bounds, strict=True))
    assert len(set(clock.slept[:3])) == 3


def test_a_host_may_fail_for_a_moment_more_than_a_thousand_times_in_a_session() -> None:
    turns = cycle([True, False])

    def every_other_time() -> Completion:
        if next(turns):
            raise later()
        return ANSWER

    client = client_of(Host(rest=every_other_time), Clock())

    async def ask_in_turn() -> Completion:
        return [await client.complete(request()) for _ in range(1100)][-1]

    assert outcome(ask_in_turn()) == replace(ANSWER, attempts=2)


@pytest.mark.parametrize(("asked", "slept"), [(7, 7), (3600, 60)])
def test_the_servers_pause_is_kept_up_to_a_cap(asked: float, slept: float) -> None:
    host, clock = Host(script=[later(retry_after=asked)]), Clock()

    outcome(client_of(host, clock).complete(request()))

    assert clock.slept == [slept]


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (ProviderError("m: slow down", status=429, retryable=True, retry_after=7.0), "rate limit"),
        (ProviderError("m: busy", status=529, retryable=True, retry_after=7.0), "overloaded"),
        (later(retry_after=7.0), "HTTP 500"),
        (ProviderError("m: no reply", retryable=True, retry_after=7.0), "no reply"),
    ],
)
def test_a_pause_is_shown_with_its_reason(error: ProviderError, why: str) -> None:
    told: list[tuple[dict[tuple[str, str], float], list[float]]] = []

    class Watch(Clock):
        async def sleep(self, seconds: float) -> None:
            told.append((activity.pauses(), activity.ages(ASKING)))
            await super().sleep(seconds)

    clock = Watch()
    activity = InFlight(clock=clock)
    outcome(client_of(Host(script=[error]), clock, activity=activity).complete(request()))

    assert told == [({("a.invalid", why): 7.0}, [])]


def test_a_request_is_in_flight_while_its_host_has_it() -> None:
    activity, seen = InFlight(), list[int]()

    def answer() -> Completion:
        seen.append(len(activity.ages(ASKING)))
        return ANSWER

    client = client_of(Host(rest=answer), Clock(), activity=activity)
    outcome(client.complete(request()))

    assert (seen, activity.ages(ASKING)) == ([1], [])


@every_sdk
def test_an_sdks_client_recovers_without_a_retry_of_the_sdks_own(
    loopback: Loopback, provider: str
) -> None:
    loopback.replies.extend([Reply(status=429), Reply(status=500), Reply(text="at last")])
    model = model_at(loopback, provider)
    (endpoint,) = endpoints([model], {}).values()
    client = client_of(make_client(endpoint), Clock())

    async def ask_and_close() -> Completion:
        answer = await client.complete(request_to(model))
        await client.aclose()
        return answer

    answer = asyncio.run(ask_and_close())

    assert (answer.text, answer.attempts, len(loopback.requests)) == ("at last", 3, 3)
