"""Client for OpenAI's Chat Completions API and compatible servers, based on the official SDK."""

from __future__ import annotations

import re
from functools import partial
from typing import Any

import httpx2

from pytest_upskill.completion import Completion, ProviderError, Request
from pytest_upskill.model import Model
from pytest_upskill.providers.call import Call
from pytest_upskill.providers.connections import Connections
from pytest_upskill.providers.keys import Endpoint
from pytest_upskill.providers.on_use import on_use
from pytest_upskill.wire.chat import LimitName, chat_body, read_chat

# The classes of replies take half of the SDK's import time and are not used: see Call.complete().
with on_use("openai.types", "openai.types.responses"):
    import openai

_REFUSALS = frozenset({400, 422, 500})
_NO_SYSTEM = re.compile(
    r"system (role|message|prompt|instruction)s?\b.*\b(not|un)[ -]?(supported|allowed|enabled)"
    r"|(does not|doesn't|not) support.*\bsystem\b|only user and assistant roles"
    r"|developer instruction is not enabled",
    re.IGNORECASE,
)
_BEARER_ONLY: Any = {"security": {"bearer_auth": True}}
"""Keeps the SDK from falling back to the organization's admin key."""


class OpenAIClient:
    """A client for the models at one endpoint.

    Args:
        endpoint: Host and key.
        timeout: Timeout of a request in seconds.
    """

    def __init__(self, endpoint: Endpoint, *, timeout: float) -> None:
        self._endpoint = endpoint
        self._timeout = timeout
        self._connections = Connections(
            endpoint,
            timeout=timeout,
            sdk=partial(openai.AsyncOpenAI, base_url=endpoint.url),
            http=openai.DefaultAsyncHttpxClient,
        )
        self._without_system: set[Model] = set()
        official = endpoint.host == "api.openai.com"
        self._limit: LimitName = "max_completion_tokens" if official else "max_tokens"

    async def complete(self, request: Request) -> Completion:
        """Send a request once, and return the completion.

        If the model has no system role, the request is repeated without one.

        Raises:
            ProviderError: There is no usable reply.
        """
        try:
            return await self._send(request)
        except ProviderError as error:
            if request.model in self._without_system or not _refuses_system(error):
                raise
        # Some chat templates have no system role (Gemma's, older Mistral's). All arms do the same.
        self._without_system.add(request.model)
        return await self._send(request)

    async def _send(self, request: Request) -> Completion:
        call = Call(request=request, endpoint=self._endpoint, timeout=self._timeout)
        apart = request.model not in self._without_system
        body = chat_body(request, limit=self._limit, system_apart=apart)
        # Not chat.completions.create(): it spends a quarter of a request's CPU time searching for
        # aliases of keys, of which this body has none.
        with self._connections.one() as sdk:
            sent = sdk.post(
                "/chat/completions", body=body, cast_to=httpx2.Response, options=_BEARER_ONLY
            )
            return await call.complete(sent, openai, read_chat)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._connections.aclose()


def _refuses_system(error: ProviderError) -> bool:
    return error.status in _REFUSALS and _NO_SYSTEM.search(str(error)) is not None
