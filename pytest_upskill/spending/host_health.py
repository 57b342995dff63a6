"""Whether a host works, by its replies until its first answer."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from pytest_upskill.completion import ProviderError
from pytest_upskill.spending.retry_policy import RetryPolicy


class HostHealth:
    """The state of a host; while it is in doubt, requests take turns.

    A host that has failed and never answered gets one request at a time, each after a pause: it may
    be starting, and if it is not running, many requests would fail like the first.

    Args:
        patience: The limits of retries.
        clock: A monotonic clock in seconds.

    Attributes:
        heard: Whether there was any reply from it.
        answered_at: Time of the latest answer, or minus infinity.
        silences: Number of failures in turn without a reply; what was sent before the last one
            does not count.
    """

    def __init__(self, patience: RetryPolicy, clock: Callable[[], float]) -> None:
        self.heard = False
        self.answered_at = -math.inf
        self.silences = 0
        self._patience = patience
        self._clock = clock
        self._failures = 0
        self._failed_at = -math.inf
        self._first_failed_at = math.inf
        self._quiet_until = -math.inf
        self._alone = asyncio.Lock()

    def answered(self) -> None:
        """Record an answer."""
        self.heard = True
        self.answered_at = self._clock()

    def failed(self, began: float, error: ProviderError, *, pause: float) -> None:
        """Record that a request failed which may be sent again.

        Args:
            began: When it was sent.
            error: Why it failed.
            pause: The pause in seconds that the host asks for.
        """
        if began <= self._failed_at:
            return
        self._failed_at = self._clock()
        self._first_failed_at = min(self._first_failed_at, self._failed_at)
        self.silences += error.status is None
        wait = self._patience.first_backoff * 2**self._failures
        self._failures += 1
        self._quiet_until = self._failed_at + max(min(wait, self._patience.longest_backoff), pause)

    @property
    def in_doubt_for(self) -> float:
        """Seconds since the first failure of a host that has never answered, else 0."""
        return self._clock() - self._first_failed_at if self._in_doubt() else 0.0

    @asynccontextmanager
    async def turn(self, sleep: Callable[[float], Awaitable[None]]) -> AsyncIterator[None]:
        """Wait until a request may be sent, which is sent in the block."""
        if not self._in_doubt():
            yield
            return
        async with self._alone:
            while self._in_doubt() and (wait := self._quiet_until - self._clock()) > 0:
                await sleep(wait)
            if self._in_doubt():
                yield
                return
        yield

    def _in_doubt(self) -> bool:
        return self._failures > 0 and self.answered_at == -math.inf
