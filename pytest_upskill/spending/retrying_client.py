"""A client that retries failed requests."""

from __future__ import annotations

from functools import partial

from pytest_upskill.completion import Client, Completion, Request
from pytest_upskill.spending.retry import Retries


class RetryingClient:
    """A client that retries failed requests.

    Args:
        client: Sends each request once.
        retries: Sends them to its endpoint.
    """

    def __init__(self, client: Client, retries: Retries) -> None:
        self._client = client
        self._retries = retries

    async def complete(self, request: Request) -> Completion:
        """Send a request, with retries; see `Retries.send`."""
        return await self._retries.send(request, partial(self._client.complete, request))

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.aclose()
