"""Client for OpenAI's Chat Completions API and compatible servers, based on the official SDK."""

from __future__ import annotations

from functools import partial
from typing import Any

import httpx2

from pytest_upskill.models.call import Call
from pytest_upskill.models.client import ProviderError
from pytest_upskill.models.completion import Completion
from pytest_upskill.models.connections import open_sdk
from pytest_upskill.models.keys import Endpoint
from pytest_upskill.models.lazy_import import lazy_import
from pytest_upskill.models.model import Model
from pytest_upskill.models.request import Request
from pytest_upskill.models.wire.chat import Dialect, chat_body, read_chat

# The classes of replies take half of the SDK's import time and are not used: see Call.complete().
with lazy_import("openai.types", "openai.types.responses"):
    import openai

_REFUSALS = frozenset({400, 422, 500})
_MAX_ADAPTATIONS = 2
"""Changes of the dialect during one request: of the system role, and of the limit's name."""
_BEARER_ONLY: Any = {"security": {"bearer_auth": True}}
"""Keeps the SDK from falling back to the organization's admin key."""


class OpenAIClient:
    """A client for the models at one endpoint.

    Args:
        endpoint: Host and key.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._sdk = open_sdk(
            endpoint,
            sdk=partial(openai.AsyncOpenAI, base_url=endpoint.url),
            http=openai.DefaultAsyncHttpxClient,
        )
        self._dialects: dict[Model, Dialect] = {}

    async def complete(self, request: Request) -> Completion:
        """Send a request once, and return the completion.

        If the host asks for another dialect, it is sent again, and later requests use that dialect.

        Raises:
            ProviderError: There is no usable reply.
        """
        dialect = self._dialects.get(request.model) or Dialect.of(request.model)
        for _ in range(_MAX_ADAPTATIONS):
            try:
                return await self._send(request, dialect)
            except ProviderError as error:
                adapted = dialect.adapted_to(str(error)) if error.status in _REFUSALS else dialect
                if adapted == dialect:
                    raise
                self._dialects[request.model] = dialect = adapted
        return await self._send(request, dialect)

    async def _send(self, request: Request, dialect: Dialect) -> Completion:
        call = Call(request=request, endpoint=self._endpoint)
        body = chat_body(request, dialect)
        # Not chat.completions.create(): it spends a quarter of a request's CPU time searching for
        # aliases of keys, and this body has none.
        sent = self._sdk.post(
            "/chat/completions", body=body, cast_to=httpx2.Response, options=_BEARER_ONLY
        )
        return await call.complete(sent, openai, read_chat)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._sdk.close()
