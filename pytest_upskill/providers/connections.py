"""Connections to one endpoint, each in the hands of an SDK's client."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Generic, Protocol, TypeVar

import httpx2

from pytest_upskill.providers.keys import NO_KEY, Endpoint

Sdk = TypeVar("Sdk", bound="_Closing")

NOT_SENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout)
"""What goes wrong before a host has anything of a request."""

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
"""Of a reply, decompressed: a hundred times what the longest answers take."""

_ABOUT_THE_BODY = frozenset({"content-encoding", "content-length", "transfer-encoding"})


class ReplyTooLong(Exception):  # noqa: N818  what a reply is, not what failed here
    """A reply has more than ``MOST_BYTES``; the rest was not read."""


class _Bounded(httpx2.AsyncClient):
    """A client that stops reading a reply that no answer can be as long as."""

    async def send(
        self, request: httpx2.Request, *, stream: bool = False, **options: Any
    ) -> httpx2.Response:
        """Send a request and read the reply.

        Raises:
            ReplyTooLong: There is too much of it.
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
    """SDK clients of one endpoint, as many as requests are in flight, with a connection each.

    One client's pool would look at all of its connections for every request: with a hundred of
    them that is a fifth of what a request takes. What makes a client slow to build, the TLS
    context, they share.

    Args:
        endpoint: The only host they are for.
        timeout: Seconds one request may take.
        sdk: The SDK's client, which lacks what both SDKs are told alike.
        http: The SDK's ``DefaultAsyncHttpxClient``.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        timeout: float,
        sdk: Callable[..., Sdk],
        http: type[httpx2.AsyncClient],
    ) -> None:
        # All that follows connecting has one limit in common, the caller's.
        limit = httpx2.Timeout(None, connect=min(timeout, _CONNECT_S))
        self._sdk = partial(
            sdk, api_key=endpoint.key if endpoint.own else NO_KEY, max_retries=0, timeout=limit
        )
        self._http = partial(
            type("BoundedClient", (_Bounded, http), {}),
            verify=httpx2.create_ssl_context(),
            timeout=limit,
            limits=httpx2.Limits(max_connections=1, keepalive_expiry=_KEEPALIVE_S),
            # A prompt and a key are for the host that was named, not for where it points.
            follow_redirects=False,
            event_hooks={"request": [_learner(endpoint)] if endpoint.own else [_keeper(endpoint)]},
        )
        # The first at once: what the environment says may be nothing to make a client with.
        self._idle = [self._new()]

    def _new(self) -> Sdk:
        return self._sdk(http_client=self._http())

    @contextmanager
    def one(self) -> Iterator[Sdk]:
        """Lend a client, the one that was given back last."""
        client = self._idle.pop() if self._idle else self._new()
        try:
            yield client
        finally:
            self._idle.append(client)

    async def aclose(self) -> None:
        """Close all that have been given back."""
        for client in self._idle:
            await client.close()


def _learner(endpoint: Endpoint) -> Callable[[httpx2.Request], Awaitable[None]]:
    """Make what notes the keys that only the SDK knows of: from profiles, files, other services."""

    async def learn(request: httpx2.Request) -> None:
        sent = (text for name, text in request.headers.items() if _SECRET_HEADER.search(name))
        # A scheme, such as Bearer, goes before the key.
        endpoint.redactor.learn(*(text.rpartition(" ")[2] for text in sent))

    return learn


def _keeper(endpoint: Endpoint) -> Callable[[httpx2.Request], Awaitable[None]]:
    """Make what takes out of a request all that is meant for others."""

    async def keep_to_the_host(request: httpx2.Request) -> None:
        # The SDKs add what the environment says (OPENAI_CUSTOM_HEADERS, OPENAI_ORG_ID, ...).
        kept = {name: text for name, text in request.headers.items() if name in _WIRE_HEADERS}
        own = {"user-agent": "pytest-upskill", "authorization": f"{endpoint.scheme} {endpoint.key}"}
        request.headers = httpx2.Headers(kept | own)

    return keep_to_the_host
