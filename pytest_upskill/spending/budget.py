"""The budget of a session."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial

from pytest_upskill.completion import Completion, Request
from pytest_upskill.spending.prices import Prices

Settle = Callable[[Completion | None, bool], Awaitable[float | None]]
"""Settles a request: its completion and whether it may be billed; returns the price."""


class BudgetError(Exception):
    """A request that was not sent because it could exceed the budget.

    Attributes:
        paid: What earlier requests of the same run have cost, None if there were none.
    """

    paid: Completion | None = None


@dataclass(eq=False, slots=True)
class Reservation:
    """What a request, or all requests of an agent's run, may still cost."""

    request: Request
    left: float | None
    """Dollars; None for no limit."""


class Budget:
    """A limit of cost that holds even if all requests in flight reach their maximum cost.

    A request that does not fit waits for others to settle. After the first rejected request, all
    others are rejected too: there is no point in paying for an incomplete measurement. Used on one
    event loop.

    Args:
        limit: Dollars; None for no limit.
        prices: The prices of the models.
        free: Whether requests of unknown price are sent, as something else limits their number.
    """

    def __init__(self, limit: float | None, prices: Prices, *, free: bool = False) -> None:
        self.limit = limit
        self._prices = prices
        self._free = free
        self.stopped = False
        """Whether a request was rejected."""
        self.assumed = 0.0
        """Dollars counted for requests with unknown cost."""
        self._spent = 0.0
        self._open: list[Reservation] = []
        self._settled = asyncio.Condition()

    @property
    def left(self) -> float | None:
        """Dollars that no request has cost or reserved; None for no limit."""
        return None if self.limit is None else max(0.0, self.limit - self._committed())

    async def reserve(self, request: Request) -> Reservation:
        """Reserve the maximum cost of a request, or of an agent's run.

        A run that does not fit gets what is left, once no other request is in flight.

        Raises:
            BudgetError: It could exceed the budget, or its price is unknown.
        """
        most = None if self.limit is None else self._prices.most(request)
        reserved = Reservation(request, most)
        if self.limit is None or (self._free and most is None):
            return reserved
        async with self._settled:
            await self._settled.wait_for(lambda: self.stopped or self._fits(most) or not self._open)
            left = self.limit - self._committed()
            if request.task is not None and most is not None and left > 0:
                reserved.left = min(most, left)
            elif not self._fits(most):
                self.stopped = True
            if self.stopped:
                self._settled.notify_all()
                raise self._exceeded_error()
            self._open.append(reserved)
        return reserved

    async def reserve_next(self, reserved: Reservation, size: int) -> Settle:
        """Check that a run's next request of so many bytes fits, and return what settles it.

        Raises:
            BudgetError: It could cost more than is left.
        """
        request = reserved.request
        # A text has no more tokens than bytes.
        most = self._prices.of_tokens(request.model, size, request.max_tokens)
        if reserved.left is not None:
            async with self._settled:
                # All bytes of a long conversation may exceed what is left of the usual tokens. It
                # does not wait for others, which may be waiting for this one.
                if most is not None and not self.stopped and self._fits(most - reserved.left):
                    reserved.left = max(reserved.left, most)
            if most is None or most > reserved.left:
                self.stopped = True
                raise self._exceeded_error()
        return partial(self.settle, reserved, most=most)

    async def settle(
        self,
        reserved: Reservation,
        completion: Completion | None,
        billable: bool,
        *,
        most: float | None = None,
    ) -> float | None:
        """Subtract the cost of a request from its reservation, and return it, None if unknown.

        Args:
            reserved: What was reserved.
            completion: The completion; None if there is none.
            billable: Whether the host may bill a request without one.
            most: What counts if the cost is unknown; None for the whole reservation.
        """
        cost = None if billable else 0.0
        if completion is not None:
            cost = completion.cost_usd
            if cost is None:
                cost = self._prices.cost(reserved.request.model, completion)
        if reserved.left is not None:
            async with self._settled:
                taken = cost
                if taken is None:
                    taken = reserved.left if most is None else most
                    self.assumed += taken
                self._spent += taken
                reserved.left = max(0.0, reserved.left - taken)
                self._settled.notify_all()
        return cost

    async def release(self, reserved: Reservation) -> None:
        """Release what is left of a reservation."""
        if reserved.left is not None:
            async with self._settled:
                self._open.remove(reserved)
                self._settled.notify_all()

    def _committed(self) -> float:
        return self._spent + sum(each.left or 0.0 for each in self._open)

    def _fits(self, most: float | None) -> bool:
        assert self.limit is not None
        return most is not None and self._committed() + most <= self.limit

    def _exceeded_error(self) -> BudgetError:
        return BudgetError(f"--upskill-max-cost: this request could exceed ${self.limit:g}")
