"""Chat completions, of OpenAI and every server that speaks them, on the official SDK."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from types import MappingProxyType
from typing import Any

import httpx2

from pytest_upskill.completion import Completion, Request, StopReason, clean
from pytest_upskill.providers.connections import Connections
from pytest_upskill.providers.keys import Endpoint
from pytest_upskill.providers.on_use import on_use
from pytest_upskill.providers.wire import Call, InsteadOfAnswer, Reply, count, part

# The classes of replies, which are half of what importing the SDK takes: see Call.complete().
with on_use("openai.types", "openai.types.responses"):
    import openai

_STOP: Mapping[str | None, StopReason] = MappingProxyType(
    {"stop": "end", "length": "max_tokens", "content_filter": "refusal"}
)
_BEARER_ONLY: Any = {"security": {"bearer_auth": True}}
"""Never the key of an organization's administrator, which the SDK would fall back on."""


class OpenAIClient:
    """Asks the models of one endpoint.

    Args:
        endpoint: Host and key.
        timeout: Seconds one request may take.
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
        # OpenAI's reasoning models refuse max_tokens; local servers ignore the newer name.
        official = endpoint.host == "api.openai.com"
        self._limit = "max_completion_tokens" if official else "max_tokens"

    async def complete(self, request: Request) -> Completion:
        """Ask once, without retrying.

        Raises:
            ProviderError: There is no usable reply.
        """
        call = Call(model=request.model, endpoint=self._endpoint, timeout=self._timeout)
        body = {
            "model": request.model.name,
            "messages": _messages(request),
            self._limit: request.max_tokens,
        }
        # Not chat.completions.create(), which spends a quarter of a request's CPU time on looking
        # for aliases of keys in a body that has none.
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


def _completion(reply: Reply, endpoint: Endpoint) -> Completion:
    choice, usage = reply.body["choices"][0], reply.body.get("usage")
    # OpenRouter's, where the model behind it broke off; what there is of an answer is no answer.
    if choice.get("error"):
        raise InsteadOfAnswer(choice)
    message = choice["message"]
    refusal = message.get("refusal")
    details = part(usage, "prompt_tokens_details")
    return Completion(
        text=endpoint.redact(clean(message.get("content") or refusal or "")),
        input_tokens=count(usage, "prompt_tokens"),
        output_tokens=count(usage, "completion_tokens"),
        cache_read_tokens=count(details, "cached_tokens") or 0,
        cache_write_tokens=count(details, "cache_write_tokens") or 0,
        stop_reason="refusal" if refusal else _STOP.get(choice.get("finish_reason"), "other"),
        served_model=reply.served_model,
        request_id=reply.headers.get("x-request-id"),
        latency_s=reply.latency_s,
    )
