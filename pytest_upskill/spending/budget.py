"""A sum of dollars that must not be passed."""

from __future__ import annotations

import asyncio


class BudgetError(Exception):
    """One more request could pass the limit, so it stays."""


class Budget:
    """Lets a request go only if the limit holds even where all in flight cost their most.

    A request that would not fit waits for others to settle. Once one had to stay all stay: what
    cannot be measured whole is not to be paid for any further. Used on one event loop.

    Args:
        limit: Dollars; None for no limit.
    """

    def __init__(self, limit: float | None) -> None:
        self.limit = limit
        self.stopped = False
        """Whether a request had to stay."""
        self.assumed = 0.0
        """Dollars counted for requests that nobody knows the cost of."""
        self._spent = 0.0
        self._in_flight: list[float] = []
        self._settled = asyncio.Condition()

    async def reserve(self, most: float | None) -> bool:
        """Set ``most`` dollars aside for a request; None, an unknown price, fits no limit."""
        if self.limit is None:
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
        """Count what a request came to: ``cost`` dollars, or its ``most`` where nobody knows."""
        if self.limit is None or most is None:
            return
        async with self._settled:
            self._in_flight.remove(most)
            self._spent += most if cost is None else cost
            self.assumed += most if cost is None else 0.0
            self._settled.notify_all()

    def _fits(self, most: float | None) -> bool:
        assert self.limit is not None
        return most is not None and self._spent + sum(self._in_flight) + most <= self.limit
