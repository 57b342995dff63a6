"""Ask a loopback server through a real SDK client."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from typing import TypeVar

import pytest

from pytest_upskill.models import Client, Completion, Model, ProviderError, Request, parse_model
from pytest_upskill.models.clients import make_client
from pytest_upskill.models.keys import endpoints
from tests.loopback import Loopback, Reply

T = TypeVar("T")

every_sdk = pytest.mark.parametrize("provider", ["anthropic", "openai"])


def model_at(loopback: Loopback, provider: str, name: str = "some-model") -> Model:
    url = loopback.url if provider == "anthropic" else loopback.openai_url
    return parse_model(f"m={provider}:{name}@{url}")


def request_to(
    model: Model, *, frame: str = "Be brief.", skill: str = "", user: str = "Why?"
) -> Request:
    return Request(model=model, frame=frame, skill=skill, user=user, max_tokens=64, run=0)


def ask(request: Request, *, cancel_after: float | None = None) -> Completion:
    """Send one request; cancel it after seconds."""
    return asyncio.run(
        with_client(request.model, lambda client: _ask(client, request, cancel_after))
    )


async def with_client(model: Model, talk: Callable[[Client], Awaitable[T]]) -> T:
    """Talk to a model's client, which has the keys of this process's environment."""
    (endpoint,) = endpoints([model], os.environ).values()
    client = make_client(endpoint)
    try:
        return await talk(client)
    finally:
        await client.aclose()


def fault(loopback: Loopback, provider: str, reply: Reply) -> ProviderError:
    """Return the error that a reply is read as."""
    loopback.replies.append(reply)
    with pytest.raises(ProviderError) as caught:
        ask(request_to(model_at(loopback, provider)))
    return caught.value


async def _ask(client: Client, request: Request, cancel_after: float | None) -> Completion:
    task = asyncio.ensure_future(client.complete(request))
    if cancel_after is not None:
        asyncio.get_running_loop().call_later(cancel_after, task.cancel)
    return await task
