"""An adaptive limit on the requests in flight at one host.

The limit matters most at a server with few slots and a queue, where too many requests do not fail
but take too long. It changes in these ways:

1. A *round* ends when as many requests in a row as the limit allows were sent at this limit and
   answered. The limit then doubles or, after the first cut, grows by a tenth, if the slowest answer
   was so fast that answers at the new limit will come well before the timeout, even from a queue.
2. Where answers are too slow for that, the limit grows by a quarter as a *probe*. The next round
   shows what the host does: if answers took longer in proportion to the limit, they waited in its
   queue, so the limit returns to its former value and stays there; if not, the host works on
   requests in parallel, and the limit grows on.
3. A refusal (HTTP 429) cuts the limit by a fifth, at most once per 15 s.
4. A timeout cuts the limit once for all requests that were in flight together: if they may have
   waited in the host's queue, to three quarters of what the host answered meanwhile, else by a
   fifth.
5. An answer restarts the timeouts of all requests that were sent after the answered one, as they
   may have waited for it in the host's queue.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import NamedTuple

START_AT_CUSTOM_HOST = 4
"""Requests in flight at first at a server of the user's own, which may have a slot or two."""

_CUT = 0.8
_COOLDOWN_S = 15.0
_GROWTH = 0.1
_PROBE_GROWTH = 0.25
_SAFE = 0.75
"""Share of the timeout that a request may take after the limit has grown."""
_SAFE_BELOW_CEILING = 0.9
"""The same where it is known at which limit requests wait too long."""
_BURST_S = 1.0
"""Requests that are sent within this time may be served in any order."""
_QUEUED_CUT = 0.75
"""New limit after a timeout in a queue, as a share of the answers that came meanwhile."""


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class SlotTicket:
    """A request that occupies a slot, and the state of the limiter when it was sent."""

    sent_at: float
    """Seconds of the limiter's clock."""
    others_in_flight: int
    """Number of other requests in flight."""
    changes_before: int
    """Number of changes of the limit so far."""
    answers_before: int
    """Number of answers so far."""
    reply_timeout: asyncio.Timeout
    """Ends the wait for a reply."""


class _Probe(NamedTuple):
    """A tentative raise of the limit."""

    limit_before: int
    mean_before: float
    """Mean seconds of the answers at that limit."""


class ConcurrencyLimiter:
    """A limit on the requests in flight at one host, which adapts to its capacity.

    A request waits for a `slot`, is sent within `wait_for_reply`, and then either `answered`,
    `refused`, `timed_out` or `failed` is called, while it still has its slot.

    Args:
        maximum: Maximum number of requests in flight.
        start: Initial number; None for the maximum.
        timeout: Seconds until a reply must come.
        clock: A monotonic clock in seconds.
    """

    def __init__(
        self,
        maximum: int,
        *,
        start: int | None = None,
        timeout: float = math.inf,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.limit = min(maximum, start or maximum)
        self.timeout = timeout
        self._maximum = maximum
        self._ceiling: int | None = None
        """The limit to stay at or below, once a queue was noticed above it."""
        self._clock = clock
        self._free_slots = asyncio.Semaphore(self.limit)
        self._surplus_slots = 0
        """Slots above a lowered limit, removed as requests end."""
        self._in_flight = 0
        self._timed: set[SlotTicket] = set()
        """Requests in flight whose timeouts are set here."""
        self._changes = 0
        """Number of changes of the limit."""
        self._round: list[float] = []
        """Seconds that each answer of this round took."""
        self._probe: _Probe | None = None
        self._cut_at = -math.inf
        self._answers = 0
        self._latest_answered = -math.inf
        """When the latest of the answered requests was sent."""

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[SlotTicket]:
        """Wait for a slot, and occupy it for the duration of the block."""
        await self._free_slots.acquire()
        ticket = SlotTicket(
            sent_at=self._clock(),
            others_in_flight=self._in_flight,
            changes_before=self._changes,
            answers_before=self._answers,
            reply_timeout=asyncio.timeout(None),
        )
        self._in_flight += 1
        try:
            yield ticket
        finally:
            self._in_flight -= 1
            self._release_slot()

    @asynccontextmanager
    async def wait_for_reply(self, ticket: SlotTicket) -> AsyncIterator[None]:
        """Cancel the block, which sends a request, if no reply arrives in time.

        The timeout restarts with each answer to a request that was sent before this one or at about
        the same time: until then this one may have waited in the host's queue.

        Raises:
            TimeoutError: There is no reply.
        """
        async with ticket.reply_timeout:
            self._timed.add(ticket)
            self._restart_timeout(ticket)
            try:
                yield
            finally:
                self._timed.remove(ticket)

    def answered(self, ticket: SlotTicket) -> None:
        """Record an answer, which may end a round and raise the limit."""
        self._answers += 1
        self._latest_answered = max(self._latest_answered, ticket.sent_at)
        for other in self._timed:
            if other is not ticket and ticket.sent_at <= other.sent_at + _BURST_S:
                self._restart_timeout(other)
        if self._was_sent_at_this_limit(ticket):
            self._round.append(self._clock() - ticket.sent_at)
            if len(self._round) >= self.limit:
                self._end_round()

    def refused(self) -> None:
        """Record that the host has too many requests, which cuts the limit by a fifth.

        It does so at most once per 15 s: requests that are in flight together are refused together.
        """
        self._abandon_round()
        if self._clock() - self._cut_at >= _COOLDOWN_S:
            self._cut(math.floor(self.limit * _CUT))

    def timed_out(self, ticket: SlotTicket) -> None:
        """Record a timeout, which cuts the limit, once for all requests in flight together.

        If the request may have waited in the host's queue, the limit is cut to a share of what the
        host answered meanwhile, and stays below what it was; otherwise it is cut by a fifth.
        """
        self._abandon_round()
        if not self._was_sent_at_this_limit(ticket):
            return
        if self.may_have_queued(ticket):
            answers_meanwhile = self._answers - ticket.answers_before
            self._ceiling = self.limit - 1
            self._cut(min(self._ceiling, math.ceil(_QUEUED_CUT * answers_meanwhile)))
        else:
            self._cut(math.floor(self.limit * _CUT))

    def failed(self) -> None:
        """Record another failure, which begins a new round and ends a probe."""
        self._abandon_round()

    def may_have_queued(self, ticket: SlotTicket) -> bool:
        """Return whether a request without an answer may have waited in the host's queue.

        That is, others were in flight, and none that was sent later has been answered.
        """
        return ticket.others_in_flight > 0 and self._latest_answered <= ticket.sent_at

    def _abandon_round(self) -> None:
        self._round, self._probe = [], None

    def _was_sent_at_this_limit(self, ticket: SlotTicket) -> bool:
        return ticket.changes_before == self._changes

    def _restart_timeout(self, ticket: SlotTicket) -> None:
        if self.timeout < math.inf and not ticket.reply_timeout.expired():
            ticket.reply_timeout.reschedule(asyncio.get_running_loop().time() + self.timeout)

    def _end_round(self) -> None:
        """Raise the limit by a step if there is time for it, otherwise by a probe."""
        slowest, mean = max(self._round), sum(self._round) / len(self._round)
        self._round = []
        ceiling = self._ceiling or self._maximum
        safe = self._safe_limit(slowest)
        has_been_cut = self._cut_at > -math.inf
        step = math.ceil(self.limit * _GROWTH) if has_been_cut else self.limit
        raised = int(min(ceiling, self.limit + step, safe))
        if raised > self.limit:
            self._set_limit(raised)
        elif self.limit < ceiling:
            self._probe_higher(ceiling, slowest, mean)

    def _safe_limit(self, slowest: float) -> float:
        """Return the limit at which the slowest answer still comes well before the timeout.

        With n requests in a queue for too few slots, the answers to n + 1 take up to (n + 1) / n as
        long.
        """
        share = _SAFE if self._ceiling is None else _SAFE_BELOW_CEILING
        return share * self.timeout * self.limit / max(slowest, 1e-9)

    def _probe_higher(self, ceiling: int, slowest: float, mean: float) -> None:
        """Begin a probe, raise the limit again after a successful one, or undo a failed one.

        If requests waited in a queue, the mean time of their answers grew in proportion to the
        limit. If it grew by less than half of that, the host works on them in parallel.
        """
        raised = min(ceiling, self.limit + math.ceil(self.limit * _PROBE_GROWTH))
        if self._probe is None:
            if slowest * raised / self.limit > self.timeout:
                return  # In a queue, they would time out.
        else:
            limit_before, mean_before = self._probe
            mean_if_queued = mean_before * self.limit / limit_before
            if mean > (mean_before + mean_if_queued) / 2:
                self._ceiling = limit_before
                self._set_limit(limit_before)
                return
        self._probe = _Probe(self.limit, mean)
        self._set_limit(raised)

    def _cut(self, limit: int) -> None:
        self._cut_at = self._clock()
        self._set_limit(max(1, limit))

    def _set_limit(self, limit: int) -> None:
        # Requests in flight are not cancelled: surplus slots are removed when these end.
        self._surplus_slots += max(0, self.limit - limit)
        for _ in range(limit - self.limit):
            self._release_slot()
        if limit != self.limit:
            self._changes += 1
        self.limit = limit

    def _release_slot(self) -> None:
        if self._surplus_slots:
            self._surplus_slots -= 1
        else:
            self._free_slots.release()
