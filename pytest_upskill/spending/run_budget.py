"""The budget of agents' runs: each reserves the price of its limits before it starts."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from pytest_upskill.completion import Completion, Request
from pytest_upskill.spending.budget import Budget, BudgetError
from pytest_upskill.spending.prices import Prices

Settle = Callable[[Completion | None, bool], Awaitable[float | None]]
"""Settles a request: its completion and whether it may be billed; returns the price."""


@dataclass(frozen=True, slots=True)
class RunBudget:
    """The budget of a session, for runs of agents.

    Args:
        budget: The budget of the session.
        prices: The prices of the models.
    """

    budget: Budget
    prices: Prices

    async def reserve(self, request: Request) -> Reservation:
        """Reserve the price of a run's limits, or all that is left if no other run is under way.

        Raises:
            BudgetError: Nothing is left.
        """
        cap = self.prices.most(request)
        amount = await self.budget.reserve_up_to(cap)
        if amount is None and self.budget.limit is not None:
            raise self._exceeded()
        return Reservation(self, request, amount or 0.0)

    def _exceeded(self) -> BudgetError:
        return BudgetError(f"--upskill-max-cost: this request could exceed ${self.budget.limit:g}")


class Reservation:
    """The part of the budget that one run may still spend.

    Args:
        of: The budget.
        request: The request of the run.
        left: Dollars that are reserved.
    """

    def __init__(self, of: RunBudget, request: Request, left: float) -> None:
        self._of = of
        self._request = request
        self._left = left

    async def request(self, size: int) -> Settle:
        """Check that a request of so many bytes fits, and return the function that settles it.

        Raises:
            BudgetError: It could cost more than is left.
        """
        model, budget = self._request.model, self._of.budget
        # A text has no more tokens than bytes.
        most = self._of.prices.of_tokens(model, size, self._request.max_tokens)
        if budget.limit is not None and most is not None:
            # All bytes of a long conversation may exceed what is left of the usual tokens.
            self._left = await budget.extend(self._left, most)
        if budget.limit is not None and (most is None or most > self._left):
            budget.stopped = True
            raise self._of._exceeded()  # noqa: SLF001  of this module

        async def settle(completion: Completion | None, billable: bool) -> float | None:
            cost: float | None = None if billable else 0.0
            if completion is not None:
                cost = self._of.prices.cost(model, completion)
            if budget.limit is not None:
                self._left = await budget.spend(self._left, most, cost)
            return cost

        return settle

    async def release(self) -> None:
        """Release what was not spent."""
        if self._of.budget.limit is not None:
            await self._of.budget.release(self._left)
