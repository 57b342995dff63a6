"""Client for OpenAI's Chat Completions API and compatible servers, based on the official SDK."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from types import MappingProxyType
from typing import Any

import httpx2

from pytest_upskill.completion import Completion, ProviderError, Request, StopReason, clean
from pytest_upskill.model import Model
from pytest_upskill.providers.connections import Connections
from pytest_upskill.providers.content import of_message
from pytest_upskill.providers.keys import Endpoint
from pytest_upskill.providers.on_use import on_use
from pytest_upskill.providers.wire import Call, InsteadOfAnswer, Reply, count, part

# The classes of replies take half of the SDK's import time and are not used: see Call.complete().
with on_use("openai.types", "openai.types.responses"):
    import openai

_STOP: Mapping[str | None, StopReason] = MappingProxyType(
    {"stop": "end", "length": "max_tokens", "content_filter": "refusal"}
)
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
        # OpenAI's reasoning models refuse max_tokens; local servers ignore the newer name.
        official = endpoint.host == "api.openai.com"
        self._limit = "max_completion_tokens" if official else "max_tokens"

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
        call = Call(model=request.model, endpoint=self._endpoint, timeout=self._timeout)
        apart = request.model not in self._without_system
        body = {
            "model": request.model.name,
            "messages": _messages(request) if apart else _one_message(request),
            self._limit: request.max_tokens,
        }
        # Not chat.completions.create(): it spends a quarter of a request's CPU time searching for
        # aliases of keys, of which this body has none.
        with self._connections.one() as sdk:
            sent = sdk.post(
                "/chat/completions", body=body, cast_to=httpx2.Response, options=_BEARER_ONLY
            )
            return await call.complete(sent, openai, _completion)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._connections.aclose()


def _messages(request: Request) -> list[dict[str, str]]:
    user = {"role": "user", "content": clean(request.user)}
    if not request.system:
        return [user]
    return [{"role": "system", "content": clean(request.system)}, user]


def _one_message(request: Request) -> list[dict[str, str]]:
    parts = filter(None, (request.system, request.user))
    return [{"role": "user", "content": clean("\n\n".join(parts))}]


def _refuses_system(error: ProviderError) -> bool:
    return error.status in _REFUSALS and _NO_SYSTEM.search(str(error)) is not None


def _completion(reply: Reply, endpoint: Endpoint) -> Completion:
    choice, usage = reply.body["choices"][0], reply.body.get("usage")
    # OpenRouter reports here that the model failed; a partial answer is not used.
    if choice.get("error"):
        raise InsteadOfAnswer(choice)
    content = of_message(choice["message"])
    details = part(usage, "prompt_tokens_details")
    return Completion(
        text=endpoint.redact(clean(content.text or content.refusal)),
        reasoning=endpoint.redact(clean(content.reasoning)),
        tool_calls=tuple(endpoint.redact(clean(name)) for name in content.tool_calls),
        input_tokens=count(usage, "prompt_tokens"),
        output_tokens=count(usage, "completion_tokens"),
        cache_read_tokens=count(details, "cached_tokens") or 0,
        cache_write_tokens=count(details, "cache_write_tokens") or 0,
        stop_reason="refusal"
        if content.refusal
        else _STOP.get(choice.get("finish_reason"), "other"),
        served_model=reply.served_model,
        request_id=reply.headers.get("x-request-id"),
        latency_s=reply.latency_s,
    )
