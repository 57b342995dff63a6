"""Client for Anthropic's Messages API, based on the official SDK."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from types import MappingProxyType
from typing import Any

import anthropic
import httpx2

from pytest_upskill.completion import Completion, Request, StopReason, clean
from pytest_upskill.providers.connections import Connections
from pytest_upskill.providers.content import of_blocks
from pytest_upskill.providers.keys import Endpoint
from pytest_upskill.providers.wire import Call, Reply, count

_STOP: Mapping[str | None, StopReason] = MappingProxyType(
    {
        "end_turn": "end",
        "stop_sequence": "end",
        "max_tokens": "max_tokens",
        "model_context_window_exceeded": "max_tokens",
        "refusal": "refusal",
    }
)


class AnthropicClient:
    """A client for the models at one endpoint.

    Args:
        endpoint: Host and key.
        timeout: Timeout of a request in seconds.
    """

    def __init__(self, endpoint: Endpoint, *, timeout: float) -> None:
        self._endpoint = endpoint
        self._timeout = timeout
        # The SDK adds /v1 itself.
        url = None if endpoint.own else endpoint.url.removesuffix("/v1")
        self._connections = Connections(
            endpoint,
            timeout=timeout,
            sdk=partial(anthropic.AsyncAnthropic, base_url=url),
            http=anthropic.DefaultAsyncHttpxClient,
        )

    async def complete(self, request: Request) -> Completion:
        """Send a request once, without retries, and return the completion.

        Raises:
            ProviderError: There is no usable reply.
        """
        call = Call(model=request.model, endpoint=self._endpoint, timeout=self._timeout)
        # Not messages.create(): it warns of models that retire soon, which `-W error` would turn
        # into a failure, and warnings cannot be caught for a single task of an event loop.
        with self._connections.one() as sdk:
            sent = sdk.post("/v1/messages", body=_body(request), cast_to=httpx2.Response)
            return await call.complete(sent, anthropic, _completion)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._connections.aclose()


def _body(request: Request) -> dict[str, Any]:
    body: dict[str, Any] = {
        "model": request.model.name,
        "max_tokens": request.max_tokens,
        "messages": [{"role": "user", "content": clean(request.user)}],
    }
    system: list[dict[str, Any]] = []
    if request.frame:
        system.append({"type": "text", "text": clean(request.frame)})
    if request.skill:
        # A separate block, so that the one before it is the same in every arm. The skill is the
        # last part that all cases share, so it gets the cache breakpoint.
        cache = {"type": "ephemeral"}
        system.append({"type": "text", "text": clean(request.skill), "cache_control": cache})
    return body | {"system": system} if system else body


def _completion(reply: Reply, endpoint: Endpoint) -> Completion:
    content = of_blocks(reply.body["content"])
    usage = reply.body.get("usage")
    cache_read = count(usage, "cache_read_input_tokens") or 0
    cache_write = count(usage, "cache_creation_input_tokens") or 0
    uncached = count(usage, "input_tokens")
    return Completion(
        text=endpoint.redact(clean(content.text)),
        reasoning=endpoint.redact(clean(content.reasoning)),
        tool_calls=tuple(endpoint.redact(clean(name)) for name in content.tool_calls),
        input_tokens=None if uncached is None else uncached + cache_read + cache_write,
        output_tokens=count(usage, "output_tokens"),
        cache_read_tokens=cache_read,
        cache_write_tokens=cache_write,
        stop_reason=_STOP.get(reply.body.get("stop_reason"), "other"),
        served_model=reply.served_model,
        request_id=reply.headers.get("request-id"),
        latency_s=reply.latency_s,
    )
