"""Connections to one endpoint, each in the hands of an SDK's client."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any, Generic, Protocol, TypeVar

import httpx2

from pytest_upskill.providers.keys import Endpoint

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
        make: Makes a client, given the arguments of its SDK's ``DefaultAsyncHttpxClient``.
    """

    def __init__(
        self, endpoint: Endpoint, *, timeout: float, make: Callable[[dict[str, Any]], Sdk]
    ) -> None:
        self._make = make
        self._http: dict[str, Any] = {
            "verify": httpx2.create_ssl_context(),
            # All that follows connecting has one limit in common, the caller's.
            "timeout": httpx2.Timeout(None, connect=min(timeout, _CONNECT_S)),
            "limits": httpx2.Limits(max_connections=1, keepalive_expiry=_KEEPALIVE_S),
            # A prompt and a key are for the host that was named, not for where it points.
            "follow_redirects": False,
            "event_hooks": {"request": [] if endpoint.own else [_keeper(endpoint)]},
        }
        self._idle: list[Sdk] = []

    @contextmanager
    def one(self) -> Iterator[Sdk]:
        """Lend a client, the one that was given back last."""
        client = self._idle.pop() if self._idle else self._make(self._http)
        try:
            yield client
        finally:
            self._idle.append(client)

    async def aclose(self) -> None:
        """Close all that have been given back."""
        for client in self._idle:
            await client.close()


def _keeper(endpoint: Endpoint) -> Callable[[httpx2.Request], Awaitable[None]]:
    """Make what takes out of a request all that is meant for others."""

    async def keep_to_the_host(request: httpx2.Request) -> None:
        # The SDKs add what the environment says (OPENAI_CUSTOM_HEADERS, OPENAI_ORG_ID, ...).
        for name in set(request.headers) - _WIRE_HEADERS:
            del request.headers[name]
        request.headers["user-agent"] = "pytest-upskill"
        request.headers["authorization"] = f"{endpoint.scheme} {endpoint.key}"

    return keep_to_the_host
