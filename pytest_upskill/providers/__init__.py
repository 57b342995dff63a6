"""Clients of the model providers."""

from __future__ import annotations

from typing import Protocol

from pytest_upskill.completion import Completion, Request


class Client(Protocol):
    """Sends requests of one model; made once per session, used on one event loop only."""

    async def complete(self, request: Request) -> Completion:
        """Ask once, without retrying.

        Raises:
            ProviderError: There is no usable reply.
        """
        ...

    async def aclose(self) -> None:
        """Close the connections."""
        ...
