"""A client that retries failed requests, and the retries at one host."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from pytest_upskill.completion import Client, Completion, Request
from pytest_upskill.spending.in_flight import InFlight
from pytest_upskill.spending.limiter import START, ConcurrencyLimiter
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
        once = partial(self._client.complete, request)
        completion, attempts = await self._retries.send(request, once)
        return replace(completion, attempts=attempts)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.aclose()


def retries_to(
    host: str, *, most: int, custom: bool, timeout: float, activity: InFlight
) -> Retries:
    """Return the object that sends the requests to a host and retries failed ones.

    Args:
        host: Name of the host in messages.
        most: Maximum number of requests in flight.
        custom: Whether it is a host of the user's own, which gets few requests at first.
        timeout: Seconds until a reply must come.
        activity: The record of waits.
    """
    slots = ConcurrencyLimiter(most, start=START if custom else None, timeout=timeout)
    return Retries(slots=slots, host=host, activity=activity)
