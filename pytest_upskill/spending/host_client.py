"""The client of a host: within the budget, at the host's pace, and with retries."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from pytest_upskill.completion import Client, Completion, ProviderError, Request
from pytest_upskill.spending.budget import Budget
from pytest_upskill.spending.in_flight import ASKING
from pytest_upskill.spending.retry import Retries


class HostClient:
    """A client that sends requests within the budget, and retries failed ones.

    Args:
        client: The client of the SDK or of a plugin, which sends a request once.
        retries: The retries at its host.
        budget: The budget of the session.
    """

    def __init__(self, client: Client, retries: Retries, budget: Budget) -> None:
        self._client = client
        self._retries = retries
        self._budget = budget

    async def complete(self, request: Request) -> Completion:
        """Send a request, with retries, and return the completion with its cost.

        Raises:
            ProviderError: There is no usable reply.
            BudgetError: The first attempt could exceed the budget.
        """
        return await self._retries.send(request, partial(self._send_once, request))

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def _send_once(self, request: Request) -> Completion:
        """Send a request once; each attempt may cost as much as the first."""
        reservation = await self._budget.reserve(request)
        completion, billable = None, True  # unless the host is known not to bill the request
        try:
            with self._retries.activity.doing(ASKING):
                completion = await self._client.complete(request)
        except ProviderError as error:
            billable = error.billable
            raise
        finally:
            cost = await self._budget.settle(reservation, completion, billable)
            await self._budget.release(reservation)
        return replace(completion, cost_usd=cost)
