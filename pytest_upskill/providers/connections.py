"""A pool of SDK clients for one endpoint, each with a single connection."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Generic, Protocol, TypeVar

import httpx2

from pytest_upskill.providers.keys import NO_KEY, Endpoint

Sdk = TypeVar("Sdk", bound="_Closable")

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


class _Closable(Protocol):
    async def close(self) -> None: ...


class Connections(Generic[Sdk]):
    """A pool of SDK clients for one endpoint, one per request in flight, with a connection each.

    A single client would scan all its connections for every request, which takes a fifth of a
    request's CPU time at a hundred connections. The clients share the TLS context, because it is
    slow to build.

    Args:
        endpoint: The endpoint of all requests.
        sdk: Makes an SDK client from the arguments that both SDKs share.
        http: The SDK's ``DefaultAsyncHttpxClient``.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        sdk: Callable[..., Sdk],
        http: type[httpx2.AsyncClient],
    ) -> None:
        # Only connecting has a timeout here; the caller limits the time of the whole request.
        timeout = httpx2.Timeout(None, connect=_CONNECT_S)
        if endpoint.uses_sdk_environment:
            api_key, hook = endpoint.key, _learn_keys
        else:
            api_key, hook = NO_KEY, _replace_headers
        self._new_sdk = partial(sdk, api_key=api_key, max_retries=0, timeout=timeout)
        self._new_http = partial(
            type("BoundedClient", (_BoundedClient, http), {}),
            verify=httpx2.create_ssl_context(),
            timeout=timeout,
            limits=httpx2.Limits(max_connections=1, keepalive_expiry=_KEEPALIVE_S),
            # Prompts and keys must only reach the named host, not the target of a redirect.
            follow_redirects=False,
            event_hooks={"request": [partial(hook, endpoint)]},
        )
        # The first client is made now, to report errors in environment variables early.
        self._idle = [self._new_client()]

    def _new_client(self) -> Sdk:
        return self._new_sdk(http_client=self._new_http())

    @contextmanager
    def borrow(self) -> Iterator[Sdk]:
        """Yield an idle client, the most recently used one, or a new one."""
        client = self._idle.pop() if self._idle else self._new_client()
        try:
            yield client
        finally:
            self._idle.append(client)

    async def aclose(self) -> None:
        """Close all idle clients."""
        for client in self._idle:
            await client.close()


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
