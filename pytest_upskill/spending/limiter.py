"""An adaptive limit of the requests in flight at one host."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

START = 4
"""Requests in flight at first at a server of the user's own, which may have a slot or two."""

_CUT = 0.8
_COOLDOWN_S = 15.0
_GROWTH = 0.1
_PROBE = 0.25
"""Tentative growth if answers take long, to see whether their number is the reason."""
_SAFE = 0.75
"""Share of the timeout that a request may take after the limit has grown."""
_SAFE_BELOW_CEILING = 0.9
"""The same where it is known at which limit requests time out."""
_BURST_S = 1.0
"""Requests that are sent within this time may be served in any order."""


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class SlotTicket:
    """A request that occupies a slot."""

    at: float
    """Time of sending it, in seconds of the limiter's clock."""
    others: int
    """Number of other requests in flight at that time."""
    changes_before: int
    """Number of changes of the limit before it."""
    answers_before: int
    """Number of answers before it."""
    reply_timeout: asyncio.Timeout
    """Ends the wait for a reply."""


class ConcurrencyLimiter:
    """A limit on the requests in flight at one host, which adapts to its capacity.

    A request waits for a `slot`, is sent within `wait_for_reply`, and then either `answered`,
    `refused`, `timed_out` or `failed` is called, while it still has its slot. Answers in a row
    raise the limit; refusals and timeouts cut it. The limit matters most at a server with few slots
    and a queue, where too many requests do not fail but take too long.

    Args:
        most: Maximum number of requests in flight.
        start: Initial number; None for the maximum.
        timeout: Seconds until a reply must come.
        clock: A monotonic clock in seconds.
    """

    def __init__(
        self,
        most: int,
        *,
        start: int | None = None,
        timeout: float = math.inf,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.limit = min(most, start or most)
        self.timeout = timeout
        self._most = most
        self._ceiling: int | None = None
        self._clock = clock
        self._free = asyncio.Semaphore(self.limit)
        self._open = 0
        self._owed = 0  # slots to remove as requests end
        self._waiting: set[SlotTicket] = set()  # whose time is limited here
        self._changes = 0
        self._took: list[float] = []  # seconds of each answer in a row
        self._tried: tuple[int, float] | None = None  # the limit before a probe, and its mean time
        self._cut_at = -math.inf
        self._answered = 0
        self._latest_answered = -math.inf

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[SlotTicket]:
        """Wait for a slot, and occupy it for the duration of the block."""
        await self._free.acquire()
        ticket = SlotTicket(
            at=self._clock(),
            others=self._open,
            changes_before=self._changes,
            answers_before=self._answered,
            reply_timeout=asyncio.timeout(None),
        )
        self._open += 1
        try:
            yield ticket
        finally:
            self._open -= 1
            self._give_back()

    @asynccontextmanager
    async def wait_for_reply(self, ticket: SlotTicket) -> AsyncIterator[None]:
        """Cancel the block, which sends a request, if no reply arrives in time.

        The timeout restarts with each answer to a request that was sent before this one, as until
        then it may have waited in the host's queue: what the host works on is not cancelled.

        Raises:
            TimeoutError: There is no reply.
        """
        async with ticket.reply_timeout:
            self._waiting.add(ticket)
            self._restart_timeout(ticket)
            try:
                yield
            finally:
                self._waiting.remove(ticket)

    def answered(self, ticket: SlotTicket) -> None:
        """Record an answer; as many in a row as the limit may raise it."""
        self._answered += 1
        self._latest_answered = max(self._latest_answered, ticket.at)
        for other in self._waiting:
            if other is not ticket and ticket.at <= other.at + _BURST_S:
                self._restart_timeout(other)
        if ticket.changes_before != self._changes:
            return
        self._took.append(self._clock() - ticket.at)
        if len(self._took) >= self.limit:
            self._grow()
            self._took = []

    def refused(self) -> None:
        """Record that the host has too many requests, which cuts the limit by a fifth.

        It does so at most once per 15 s: requests that are in flight together are refused together.
        """
        self.failed()
        if self._clock() - self._cut_at >= _COOLDOWN_S:
            self._cut(math.floor(self.limit * _CUT))

    def timed_out(self, ticket: SlotTicket) -> bool:
        """Record a timeout, which cuts the limit, once for all requests in flight together.

        If the request may have waited in the host's queue, the limit is cut to what the host
        answered meanwhile, and stays below what it was; otherwise it is cut by a fifth.

        Returns:
            Whether it may have waited there: others were in flight, and none that was sent later
            has been answered.
        """
        queued = ticket.others > 0 and self._latest_answered <= ticket.at
        self.failed()
        if ticket.changes_before == self._changes:
            if queued:
                self._ceiling = self.limit - 1
                self._cut(
                    min(self._ceiling, math.ceil(_SAFE * (self._answered - ticket.answers_before)))
                )
            else:
                self._cut(math.floor(self.limit * _CUT))
        return queued

    def failed(self) -> None:
        """Record another failure, after which the count of answers in a row restarts."""
        self._took, self._tried = [], None

    def _restart_timeout(self, ticket: SlotTicket) -> None:
        if self.timeout < math.inf and not ticket.reply_timeout.expired():
            ticket.reply_timeout.reschedule(asyncio.get_running_loop().time() + self.timeout)

    def _grow(self) -> None:
        """Double the limit, or after the first cut raise it by a tenth, if there is room.

        With n requests in a queue for too few slots, the answers to n + 1 take up to (n + 1) / n as
        long: the slowest must stay well below the timeout.
        """
        most = self._ceiling or self._most
        step = self.limit if self._cut_at == -math.inf else math.ceil(self.limit * _GROWTH)
        safe = _SAFE if self._ceiling is None else _SAFE_BELOW_CEILING
        room = safe * self.timeout * self.limit / max(*self._took, 1e-9)
        grown = int(min(most, self.limit + step, room))
        if grown > self.limit:
            self._set(grown)
        elif self.limit < most:
            self._try_more(most)

    def _try_more(self, most: int) -> None:
        """Raise the limit by a quarter where there is no room, and look at the next answers.

        If they waited in a queue, their mean time grows in proportion to the limit. If it grows by
        less than half of that, the host works on them in parallel, and the limit grows on;
        otherwise the raise is undone.
        """
        mean = sum(self._took) / len(self._took)
        more = min(most, self.limit + math.ceil(self.limit * _PROBE))
        if self._tried is None:
            if max(self._took) * more / self.limit > self.timeout:
                return
        else:
            limit_before, mean_before = self._tried
            if_queued = mean_before * self.limit / limit_before
            if mean > (mean_before + if_queued) / 2:
                self._ceiling = limit_before
                self._set(self._ceiling)
                return
        self._tried = self.limit, mean
        self._set(more)

    def _cut(self, limit: int) -> None:
        self._cut_at = self._clock()
        self._set(max(1, limit))

    def _set(self, limit: int) -> None:
        # Requests in flight are not cancelled: their slots are removed when they end.
        self._owed += max(0, self.limit - limit)
        for _ in range(limit - self.limit):
            self._give_back()
        self._changes += limit != self.limit
        self.limit = limit

    def _give_back(self) -> None:
        if self._owed:
            self._owed -= 1
        else:
            self._free.release()
