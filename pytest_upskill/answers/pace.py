"""How many requests a host gets at once, and how long each of them may take.

A host gets all requests that its width allows, from the first moment. A server with few slots puts
them in a queue, and one that works on all at once gets slower, so neither time is held against a
request as long as the host answers:

1. The timeout of a request restarts with each answer to a request that was sent earlier or at about
   the same time: until then this one may have waited behind it.
2. A timeout without any answer since the request was sent halves the width, once for all requests
   that were in flight together.
3. A refusal (HTTP 429) cuts the width to four fifths, at most once per 15 s.
4. The width grows by one, up to the maximum, after as many answers as it allows requests.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

_CUT = 0.8
_COOLDOWN_S = 15.0
_BURST_S = 1.0
"""Requests that are sent within this time may be served in any order."""


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class Slot:
    """A place among the requests in flight, and what was known when it was taken."""

    sent_at: float
    """Seconds of the clock."""
    answers_before: int
    """Number of answers of the host so far."""
    others_in_flight: int
    reply_timeout: asyncio.Timeout
    """Ends the wait for a reply."""


class Pace:
    """The requests in flight at one host.

    A request waits for a `slot` and is sent within `wait_for_reply`. Then `answered`, `refused` or
    `timed_out` is called while it still has its slot, or none of them after another failure.

    Args:
        maximum: Maximum number of requests in flight.
        timeout: Seconds until a reply must come.
        clock: A monotonic clock in seconds.

    Attributes:
        width: Number of requests that may be in flight now.
        timeout: As given.
    """

    def __init__(
        self,
        maximum: int,
        *,
        timeout: float = math.inf,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.width = maximum
        self.timeout = timeout
        self._maximum = maximum
        self._clock = clock
        self._free = asyncio.Semaphore(maximum)
        self._surplus = 0
        """Slots above a width that was cut, removed as requests end."""
        self._in_flight = 0
        self._timed: set[Slot] = set()
        """Requests in flight whose timeouts are set here."""
        self._answers = 0
        self._answers_at_width = 0
        self._refused_at = -math.inf
        self._halved_at = -math.inf

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[Slot]:
        """Wait for a slot, and occupy it for the duration of the block."""
        await self._free.acquire()
        slot = Slot(
            sent_at=self._clock(),
            answers_before=self._answers,
            others_in_flight=self._in_flight,
            reply_timeout=asyncio.timeout(None),
        )
        self._in_flight += 1
        try:
            yield slot
        finally:
            self._in_flight -= 1
            self._release()

    @asynccontextmanager
    async def wait_for_reply(self, slot: Slot) -> AsyncIterator[None]:
        """Cancel the block, which sends a request, if no reply arrives in time.

        Raises:
            TimeoutError: There is no reply.
        """
        async with slot.reply_timeout:
            self._timed.add(slot)
            self._restart_timeout(slot)
            try:
                yield
            finally:
                self._timed.remove(slot)

    def answered(self, slot: Slot) -> None:
        """Record an answer."""
        self._answers += 1
        for other in self._timed:
            if other is not slot and slot.sent_at <= other.sent_at + _BURST_S:
                self._restart_timeout(other)
        self._answers_at_width += 1
        if self._answers_at_width >= self.width < self._maximum:
            self._set_width(self.width + 1)

    def refused(self) -> None:
        """Record that the host has too many requests."""
        if self._clock() - self._refused_at >= _COOLDOWN_S:
            self._refused_at = self._clock()
            self._set_width(math.floor(self.width * _CUT))

    def timed_out(self, slot: Slot) -> None:
        """Record that there was no reply in time."""
        if self._answers == slot.answers_before and slot.sent_at >= self._halved_at:
            self._halved_at = self._clock()
            self._set_width(self.width // 2)

    def had_company(self, slot: Slot) -> bool:
        """Return whether others were in flight when a request was sent, or are now."""
        return slot.others_in_flight > 0 or self._in_flight > 1

    def _restart_timeout(self, slot: Slot) -> None:
        if self.timeout < math.inf and not slot.reply_timeout.expired():
            slot.reply_timeout.reschedule(asyncio.get_running_loop().time() + self.timeout)

    def _set_width(self, width: int) -> None:
        width = max(1, width)
        # Requests in flight are not cancelled: surplus slots are removed when these end.
        self._surplus += max(0, self.width - width)
        for _ in range(width - self.width):
            self._release()
        self.width = width
        self._answers_at_width = 0

    def _release(self) -> None:
        if self._surplus:
            self._surplus -= 1
        else:
            self._free.release()
