"""Ask once, where the money for it is left, and count what it may have cost."""

from __future__ import annotations

from dataclasses import replace

from pytest_upskill.completion import Completion, ProviderError, Request
from pytest_upskill.providers import Client
from pytest_upskill.spending.budget import Budget, BudgetError
from pytest_upskill.spending.in_flight import ASKING, InFlight
from pytest_upskill.spending.prices import Prices


class BudgetedClient:
    """A client that sends a request only within the budget, and prices the answer.

    Args:
        client: Asks once.
        budget: What may be spent, in all.
        prices: What answers cost.
        activity: Where to note that a request is at its host.
    """

    def __init__(self, client: Client, budget: Budget, prices: Prices, activity: InFlight) -> None:
        self._client = client
        self._budget = budget
        self._prices = prices
        self._activity = activity

    async def complete(self, request: Request) -> Completion:
        """Ask once; each attempt is paid for by itself.

        Raises:
            BudgetError: The limit could be passed; nothing was sent.
            ProviderError: There is no usable reply.
        """
        most = self._prices.most(request) if self._budget.limit is not None else None
        if not await self._budget.reserve(most):
            limit = f"${self._budget.limit:g}"
            raise BudgetError(f"--upskill-max-cost: {limit} could be passed by asking this")
        # What breaks in a way of its own may have been answered, and paid for, before.
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
