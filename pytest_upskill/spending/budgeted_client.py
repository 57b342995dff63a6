"""A client that checks the budget before each request and records the cost."""

from __future__ import annotations

from dataclasses import replace

from pytest_upskill.completion import Client, Completion, ProviderError, Request
from pytest_upskill.spending.budget import Budget, BudgetError
from pytest_upskill.spending.in_flight import ASKING, InFlight
from pytest_upskill.spending.prices import Prices


class BudgetedClient:
    """A client that sends requests only within the budget, and adds costs to completions.

    Args:
        client: Sends each request once.
        budget: The budget of the session.
        prices: The prices of the models.
        activity: The record of requests in flight.
    """

    def __init__(self, client: Client, budget: Budget, prices: Prices, activity: InFlight) -> None:
        self._client = client
        self._budget = budget
        self._prices = prices
        self._activity = activity

    async def complete(self, request: Request) -> Completion:
        """Send a request once, and return the completion with its cost; each retry costs again.

        Raises:
            BudgetError: The request could exceed the budget and was not sent.
            ProviderError: There is no usable reply.
        """
        most = self._prices.most(request) if self._budget.limit is not None else None
        if not await self._budget.reserve(most):
            limit = f"${self._budget.limit:g}"
            raise BudgetError(f"--upskill-max-cost: this request could exceed {limit}")
        # After any other exception the cost is unknown: the host may have answered and billed it.
        cost: float | None = None
        try:
            with self._activity.doing(ASKING):
                completion = await self._client.complete(request)
            cost = completion.cost_usd
            if cost is None:
                cost = self._prices.cost(request.model, completion)
            return replace(completion, cost_usd=cost)
        except ProviderError as error:
            cost = None if error.billable else 0.0
            raise
        finally:
            await self._budget.settle(most, cost)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.aclose()
