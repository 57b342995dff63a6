"""The budget of a session: requests reserve their maximum cost before they are sent."""

import asyncio
import math
from collections.abc import Awaitable, Callable
from dataclasses import KW_ONLY, dataclass, field
from functools import partial

from pytest_upskill.answers.prices import Prices
from pytest_upskill.figures.wording import money
from pytest_upskill.models import Completion, Request

Settle = Callable[[Completion | None, bool], Awaitable[float | None]]
"""Settles a request by its completion and whether it may be billed, and returns its cost."""


_NOT_SENT = "--upskill-max-cost: not sent, as it could exceed the limit"


class BudgetError(Exception):
    """A request that was not sent because it could exceed the budget.

    Attributes:
        paid: What earlier requests of the same run have cost, None if there were none.
    """

    paid: Completion | None = None


@dataclass(eq=False, slots=True)
class Reservation:
    """Money that is set aside for a request, or for all requests of an agent's run."""

    request: Request
    left: float | None
    """Dollars that it may still cost; None for no limit."""


@dataclass(eq=False, slots=True)
class Budget:
    """A limit of cost that holds even if all requests in flight reach their maximum cost.

    A request that does not fit waits for others to settle. After the first rejected request, all
    others are rejected too: there is no point in paying for an incomplete measurement. Used on one
    event loop.
    """

    limit: float | None
    """Dollars; None for no limit."""
    prices: Prices
    """The prices of the models."""
    _: KW_ONLY
    allow_unpriced: bool = False
    """Whether to send requests of unknown price, as something else limits their number."""
    of_left_batches: float = 0.0
    """Dollars that batches of earlier sessions, which were left, may still cost."""
    stopped: bool = field(default=False, init=False)
    """Whether a request was rejected."""
    assumed: float = field(default=0.0, init=False)
    """Dollars counted for requests with unknown cost."""
    _spent: float = field(default=0.0, init=False)
    _reservations: list[Reservation] = field(default_factory=list, init=False)
    _changed: asyncio.Condition = field(default_factory=asyncio.Condition, init=False)
    """Notified when money was released, or the budget was stopped."""

    @property
    def left(self) -> float | None:
        """Dollars that are neither spent nor reserved; None for no limit."""
        return None if self.limit is None else max(0.0, self.limit - self._committed())

    @property
    def why_stopped(self) -> str:
        """Why no further request is sent, and the cure; empty if the budget has sufficed."""
        if not self.stopped:
            return ""
        counted = (
            (self.of_left_batches, "batches that were left may cost"),
            (self.assumed, "requests of unknown cost are assumed to cost"),
        )
        why = " and ".join(f"{what} {money(dollars)}" for dollars, what in counted if dollars)
        limit = f"{self.limit:.9f}".rstrip("0").rstrip(".")  # as it was written, not 1e-05
        exceeds = f"could exceed ${limit}{f', as {why}' if why else ''}"
        cure = "raise the limit: what is recorded is not paid again"
        return f"--upskill-max-cost: stopped, as the next request {exceeds}: {cure}"

    async def reserve(self, request: Request, *, share: float = 1.0) -> Reservation:
        """Reserve the maximum cost of a request, or of an agent's run.

        A run that does not fit gets what is left, once no other request is in flight.

        Args:
            request: The request.
            share: Share of the price that is charged for it.

        Raises:
            BudgetError: It could exceed the budget, or its price is unknown.
        """
        if self.limit is None:
            return Reservation(request, None)
        price = self.prices.max_cost(request)
        if price is None and self.allow_unpriced:
            return Reservation(request, None)
        # Nothing fits that has no price.
        max_cost = math.inf if price is None else price * share
        async with self._changed:
            await self._changed.wait_for(
                lambda: self.stopped or self._fits(max_cost) or not self._reservations
            )
            left = self.limit - self._committed()
            if request.task is not None and price is not None and left > 0:
                max_cost = min(max_cost, left)
            elif not self._fits(max_cost):
                self.stopped = True
            if self.stopped:
                self._changed.notify_all()
                raise BudgetError(_NOT_SENT)
            reservation = Reservation(request, max_cost)
            self._reservations.append(reservation)
        return reservation

    async def reserve_next(self, reservation: Reservation, input_tokens: int) -> Settle:
        """Check that a run's next request of at most so many tokens fits; return what settles it.

        Raises:
            BudgetError: It could cost more than is left.
        """
        request = reservation.request
        max_cost = self.prices.max_cost_of_tokens(request.model, input_tokens, request.max_tokens)
        settle = partial(self.settle, reservation, cost_if_unknown=max_cost)
        if reservation.left is None:
            return settle
        if max_cost is not None:
            # Bytes, as a bound on tokens, may exceed what the run has left: it gets more if there
            # is more, without waiting for others, which may be waiting for this run.
            async with self._changed:
                if not self.stopped and self._fits(max_cost - reservation.left):
                    reservation.left = max(reservation.left, max_cost)
            if max_cost <= reservation.left:
                return settle
        self.stopped = True
        raise BudgetError(_NOT_SENT)

    async def settle(
        self,
        reservation: Reservation,
        completion: Completion | None,
        billable: bool,
        *,
        cost_if_unknown: float | None = None,
    ) -> float | None:
        """Subtract the cost of a request from its reservation, and return it, None if unknown.

        Args:
            reservation: The reservation.
            completion: The completion; None if there is none.
            billable: Whether the host may bill a request without a completion.
            cost_if_unknown: Dollars that count then; None for the whole reservation.
        """
        cost = None if billable else 0.0
        if completion is not None:
            cost = completion.cost_usd
            if cost is None:
                cost = self.prices.cost(reservation.request.model, completion)
        if reservation.left is None:
            return cost
        async with self._changed:
            counted = cost
            if counted is None:
                counted = reservation.left if cost_if_unknown is None else cost_if_unknown
                self.assumed += counted
            self._spent += counted
            reservation.left = max(0.0, reservation.left - counted)
            self._changed.notify_all()
        return cost

    async def settle_left(self, reserved: float, cost: float) -> None:
        """Count the cost of a batch of an earlier session in place of what was reserved for it."""
        async with self._changed:
            self.of_left_batches = max(0.0, self.of_left_batches - reserved)
            self._spent += cost
            self._changed.notify_all()

    async def release(self, reservation: Reservation) -> None:
        """Release what is left of a reservation."""
        if reservation.left is not None:
            async with self._changed:
                self._reservations.remove(reservation)
                self._changed.notify_all()

    def _committed(self) -> float:
        reserved = sum(reservation.left or 0.0 for reservation in self._reservations)
        return self._spent + reserved + self.of_left_batches

    def _fits(self, max_cost: float) -> bool:
        return self.limit is None or self._committed() + max_cost <= self.limit
