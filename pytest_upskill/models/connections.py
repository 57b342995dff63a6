"""The HTTP client below an SDK: which headers it sends, and how much of a reply it reads."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import httpx2

from pytest_upskill.models.keys import NO_KEY, Endpoint

Sdk = TypeVar("Sdk")

NOT_SENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout)
"""Errors that occur before any part of a request is sent."""

_CONNECT_S = 10.0
_KEEPALIVE_S = 120.0
_PROTOCOL_HEADERS = frozenset(
    {
        "accept",
        "accept-encoding",
        "anthropic-version",
        "connection",
        "content-length",
        "content-type",
        "host",
    }
)
_SECRET_HEADER = re.compile("auth|key|token|secret|cookie|credential")


MAX_BYTES = 1 << 24
"""Maximum size of a decompressed reply, about a hundred times that of the longest answers."""

_BODY_HEADERS = frozenset({"content-encoding", "content-length", "transfer-encoding"})


class ReplyTooLong(Exception):  # noqa: N818  describes a reply, not a failure here
    """A reply of more than ``MAX_BYTES``, whose rest was not read."""


class _BoundedClient(httpx2.AsyncClient):
    """An HTTP client that limits the size of replies."""

    async def send(
        self, request: httpx2.Request, *, stream: bool = False, **options: Any
    ) -> httpx2.Response:
        """Send a request and read the reply.

        Raises:
            ReplyTooLong: The reply has more than ``MAX_BYTES``.
        """
        assert not stream
        response = await super().send(request, stream=True, **options)
        body = bytearray()
        try:
            async for chunk in response.aiter_bytes():
                body += chunk
                if len(body) > MAX_BYTES:
                    raise ReplyTooLong
        finally:
            await response.aclose()
        headers = [(k, v) for k, v in response.headers.multi_items() if k not in _BODY_HEADERS]
        return httpx2.Response(
            response.status_code,
            headers=headers,
            content=bytes(body),
            request=request,
            extensions=response.extensions,
        )


def open_sdk(endpoint: Endpoint, *, sdk: Callable[..., Sdk], http: type[httpx2.AsyncClient]) -> Sdk:
    """Open an SDK client for an endpoint.

    Args:
        endpoint: The endpoint of all requests.
        sdk: Makes the client from the arguments that both SDKs share.
        http: The SDK's ``DefaultAsyncHttpxClient``.
    """
    # Only connecting has a timeout here; the caller limits the time of the whole request.
    timeout = httpx2.Timeout(None, connect=_CONNECT_S)
    if endpoint.uses_sdk_environment:
        api_key, hook = endpoint.key, _learn_keys
    else:
        api_key, hook = NO_KEY, _replace_headers
    bounded = type("BoundedClient", (_BoundedClient, http), {})
    client = bounded(
        timeout=timeout,
        limits=httpx2.Limits(max_connections=None, keepalive_expiry=_KEEPALIVE_S),
        # Prompts and keys must only reach the named host, not the target of a redirect.
        follow_redirects=False,
        event_hooks={"request": [partial(hook, endpoint)]},
    )
    return sdk(api_key=api_key, max_retries=0, timeout=timeout, http_client=client)


async def _learn_keys(endpoint: Endpoint, request: httpx2.Request) -> None:
    """Have the redactor learn the keys that the SDK found in profiles, files or services."""
    secrets = (text for name, text in request.headers.items() if _SECRET_HEADER.search(name))
    # A scheme, such as Bearer, may precede the key.
    endpoint.redactor.learn(*(text.rpartition(" ")[2] for text in secrets))


async def _replace_headers(endpoint: Endpoint, request: httpx2.Request) -> None:
    """Remove headers that are not meant for this host, and add its key.

    The SDKs add headers from environment variables (OPENAI_CUSTOM_HEADERS, OPENAI_ORG_ID, …).
    """
    kept = {name: text for name, text in request.headers.items() if name in _PROTOCOL_HEADERS}
    own = {"user-agent": "pytest-upskill", "authorization": f"{endpoint.scheme} {endpoint.key}"}
    request.headers = httpx2.Headers(kept | own)
