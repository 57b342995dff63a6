"""Connections to a host are kept and used again."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from pytest_upskill.models import Client
from tests.loopback import Loopback, Reply
from tests.sdk_requests import every_sdk, model_at, request_to, with_client


def ask_in_rounds(loopback: Loopback, provider: str, rounds: Sequence[int]) -> None:
    """Send the requests of each round at once, and the rounds one after the other."""
    asked = request_to(model_at(loopback, provider))

    async def talk(client: Client) -> None:
        for width in rounds:
            await asyncio.gather(*(client.complete(replace(asked, run=n)) for n in range(width)))

    asyncio.run(with_client(asked.model, talk))


@every_sdk
def test_there_are_as_many_connections_as_requests_were_ever_in_flight(
    loopback: Loopback, provider: str
) -> None:
    loopback.answer = lambda _: Reply(delay=0.3)

    ask_in_rounds(loopback, provider, [3, 5, 5])

    assert len(loopback.requests) == 13
    assert loopback.peak == 5
    assert loopback.connections == 5


@every_sdk
def test_one_request_after_another_takes_one_connection(loopback: Loopback, provider: str) -> None:
    ask_in_rounds(loopback, provider, [1, 1, 1])

    assert loopback.connections == 1


@every_sdk
def test_a_connection_that_the_server_closed_is_opened_again(
    loopback: Loopback, provider: str
) -> None:
    loopback.answer = lambda _: Reply(headers={"connection": "close"})

    ask_in_rounds(loopback, provider, [1, 1])

    assert len(loopback.requests) == 2
    assert loopback.connections == 2
