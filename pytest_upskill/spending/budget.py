"""The budget of a session."""

from __future__ import annotations

import asyncio

from pytest_upskill.completion import Completion


class BudgetError(Exception):
    """A request that was not sent because it could exceed the budget.

    Attributes:
        paid: What earlier requests of the same run have cost, None if there were none.
    """

    paid: Completion | None = None


class Budget:
    """A limit of cost that holds even if all requests in flight reach their maximum cost.

    A request that does not fit waits for others to settle. After the first rejected request, all
    others are rejected too: there is no point in paying for an incomplete measurement. Used on one
    event loop.

    Args:
        limit: Dollars; None for no limit.
        free: Whether requests of unknown price are sent, as something else limits their number.
    """

    def __init__(self, limit: float | None, *, free: bool = False) -> None:
        self.limit = limit
        self._free = free
        self.stopped = False
        """Whether a request was rejected."""
        self.assumed = 0.0
        """Dollars counted for requests with unknown cost."""
        self._spent = 0.0
        self._in_flight: list[float] = []
        self._settled = asyncio.Condition()

    @property
    def left(self) -> float | None:
        """Dollars that no request has cost or reserved; None for no limit."""
        if self.limit is None:
            return None
        return max(0.0, self.limit - self._spent - sum(self._in_flight))

    async def reserve(self, most: float | None) -> bool:
        """Reserve the maximum cost of a request.

        Args:
            most: Dollars; None for an unknown price, which exceeds any limit.

        Returns:
            Whether the request may be sent.
        """
        if self.limit is None or (self._free and most is None):
            return True
        async with self._settled:
            await self._settled.wait_for(
                lambda: self.stopped or self._fits(most) or not self._in_flight
            )
            if self.stopped or most is None or not self._fits(most):
                self.stopped = True
                self._settled.notify_all()
                return False
            self._in_flight.append(most)
            return True

    async def settle(self, most: float | None, cost: float | None) -> None:
        """Replace the reservation of a request by its cost.

        Args:
            most: The reserved dollars.
            cost: The actual dollars; None if unknown, which counts as ``most``.
        """
        if self.limit is None or most is None:
            return
        async with self._settled:
            self._in_flight.remove(most)
            self._spent += most if cost is None else cost
            self.assumed += most if cost is None else 0.0
            self._settled.notify_all()

    async def reserve_up_to(self, most: float | None) -> float | None:
        """Reserve the maximum cost of an agent's run, or what is left if nothing is in flight.

        Args:
            most: Dollars; None for an unknown price.

        Returns:
            The reserved dollars; None if nothing is left, or there is no limit.
        """
        if self.limit is None:
            return None
        async with self._settled:
            await self._settled.wait_for(
                lambda: self.stopped or self._fits(most) or not self._in_flight
            )
            left = self.limit - self._spent - sum(self._in_flight)
            if self.stopped or most is None or left <= 0:
                self.stopped = True
                self._settled.notify_all()
                return None
            amount = min(most, left)
            self._in_flight.append(amount)
            return amount

    async def extend(self, reserved: float, most: float) -> float:
        """Raise a run's reservation to the maximum cost of a request, if that fits.

        It does not wait for others, which may be waiting for this one.

        Args:
            reserved: The run's reservation.
            most: Dollars that it needs.

        Returns:
            The reservation, unchanged if more does not fit.
        """
        async with self._settled:
            if self.stopped or most <= reserved or not self._fits(most - reserved):
                return reserved
            self._in_flight.remove(reserved)
            self._in_flight.append(most)
            return most

    async def spend(self, reserved: float, most: float | None, cost: float | None) -> float:
        """Subtract the cost of a request from a run's reservation.

        Args:
            reserved: The run's reservation.
            most: The maximum cost of the request, which counts if ``cost`` is unknown.
            cost: Its cost; None if unknown.

        Returns:
            What is left of the reservation.
        """
        async with self._settled:
            taken = (most or 0.0) if cost is None else cost
            self._in_flight.remove(reserved)
            self._spent += taken
            self.assumed += taken if cost is None else 0.0
            left = max(0.0, reserved - taken)
            self._in_flight.append(left)
            self._settled.notify_all()
            return left

    async def release(self, reserved: float) -> None:
        """Release what is left of a run's reservation."""
        async with self._settled:
            self._in_flight.remove(reserved)
            self._settled.notify_all()

    def _fits(self, most: float | None) -> bool:
        assert self.limit is not None
        return most is not None and self._spent + sum(self._in_flight) + most <= self.limit
