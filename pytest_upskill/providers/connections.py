"""Connections to one endpoint, each with an SDK client of its own."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Generic, Protocol, TypeVar

import httpx2

from pytest_upskill.providers.keys import NO_KEY, Endpoint

Sdk = TypeVar("Sdk", bound="_Closing")

NOT_SENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout)
"""Errors that occur before any part of a request is sent."""

_CONNECT_S = 10.0
_KEEPALIVE_S = 120.0
_WIRE_HEADERS = frozenset(
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


MOST_BYTES = 1 << 24
"""Maximum size of a decompressed reply, about a hundred times that of the longest answers."""

_ABOUT_THE_BODY = frozenset({"content-encoding", "content-length", "transfer-encoding"})


class ReplyTooLong(Exception):  # noqa: N818  describes a reply, not a failure here
    """A reply of more than ``MOST_BYTES``, of which the rest was not read."""


class _Bounded(httpx2.AsyncClient):
    """An HTTP client that limits the size of replies."""

    async def send(
        self, request: httpx2.Request, *, stream: bool = False, **options: Any
    ) -> httpx2.Response:
        """Send a request and read the reply.

        Raises:
            ReplyTooLong: The reply has more than ``MOST_BYTES``.
        """
        assert not stream
        response = await super().send(request, stream=True, **options)
        body = bytearray()
        try:
            async for chunk in response.aiter_bytes():
                body += chunk
                if len(body) > MOST_BYTES:
                    raise ReplyTooLong
        finally:
            await response.aclose()
        headers = [(k, v) for k, v in response.headers.multi_items() if k not in _ABOUT_THE_BODY]
        return httpx2.Response(
            response.status_code,
            headers=headers,
            content=bytes(body),
            request=request,
            extensions=response.extensions,
        )


class _Closing(Protocol):
    async def close(self) -> None: ...


class Connections(Generic[Sdk]):
    """A pool of SDK clients for one endpoint, one per request in flight, with a connection each.

    A single client would scan all connections of its pool for every request, which takes a fifth of
    a request's CPU time at a hundred connections. The clients share the TLS context, because it is
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
        limit = httpx2.Timeout(None, connect=_CONNECT_S)
        hook = _learn if endpoint.own else _keep_to_the_host
        self._sdk = partial(
            sdk, api_key=endpoint.key if endpoint.own else NO_KEY, max_retries=0, timeout=limit
        )
        self._http = partial(
            type("BoundedClient", (_Bounded, http), {}),
            verify=httpx2.create_ssl_context(),
            timeout=limit,
            limits=httpx2.Limits(max_connections=1, keepalive_expiry=_KEEPALIVE_S),
            # Prompts and keys must only reach the named host, not the target of a redirect.
            follow_redirects=False,
            event_hooks={"request": [partial(hook, endpoint)]},
        )
        # The first client is made now, to report errors in environment variables early.
        self._idle = [self._new()]

    def _new(self) -> Sdk:
        return self._sdk(http_client=self._http())

    @contextmanager
    def borrow(self) -> Iterator[Sdk]:
        """Yield an idle client, the most recently used one, or a new one."""
        client = self._idle.pop() if self._idle else self._new()
        try:
            yield client
        finally:
            self._idle.append(client)

    async def aclose(self) -> None:
        """Close all idle clients."""
        for client in self._idle:
            await client.close()


async def _learn(endpoint: Endpoint, request: httpx2.Request) -> None:
    """Redact keys that the SDK itself found, in profiles, files or services."""
    sent = (text for name, text in request.headers.items() if _SECRET_HEADER.search(name))
    # A scheme, such as Bearer, may precede the key.
    endpoint.redactor.learn(*(text.rpartition(" ")[2] for text in sent))


async def _keep_to_the_host(endpoint: Endpoint, request: httpx2.Request) -> None:
    """Remove headers that are not meant for this host.

    The SDKs add some from environment variables (OPENAI_CUSTOM_HEADERS, OPENAI_ORG_ID, …).
    """
    kept = {name: text for name, text in request.headers.items() if name in _WIRE_HEADERS}
    own = {"user-agent": "pytest-upskill", "authorization": f"{endpoint.scheme} {endpoint.key}"}
    request.headers = httpx2.Headers(kept | own)
