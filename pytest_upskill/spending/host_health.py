"""What the requests to a host have shown: whether it works, and which of its models are stopped."""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from http import HTTPStatus

from pytest_upskill.completion import ProviderError, Request
from pytest_upskill.model import Model
from pytest_upskill.spending.retry_policy import RetryPolicy

TOO_MANY = frozenset({429, 529})
"""Statuses of a host that has too many requests."""


class HostHealth:
    """The state of a host; while it is in doubt, requests take turns.

    A host that has failed and never answered gets one request at a time, each after a pause: it may
    be starting, and if it is not running, many requests would fail like the first.

    Args:
        policy: The limits of retries.
        clock: A monotonic clock in seconds.
        sleep: Waits for a number of seconds.

    Attributes:
        heard: Whether there was any reply from it.
        answered_at: Time of the latest answer, or minus infinity.
        silences: Number of failures in turn without a reply; what was sent before the last one
            does not count.
    """

    def __init__(
        self,
        policy: RetryPolicy,
        clock: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]],
    ) -> None:
        self.heard = False
        self.answered_at = -math.inf
        self.silences = 0
        self._policy = policy
        self._clock = clock
        self._sleep = sleep
        self._failures = 0
        self._failed_at = -math.inf
        self._first_failed_at = math.inf
        self._quiet_until = -math.inf
        self._alone = asyncio.Lock()
        self._answering: set[Model] = set()
        self._refusals: Counter[tuple[Model, str]] = Counter()
        self._stopped: dict[Model | None, str] = {}  # None for all models

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Wait until a request may be sent, which is sent in the block."""
        if not self._is_in_doubt():
            yield
            return
        async with self._alone:
            while self._is_in_doubt() and (wait := self._quiet_until - self._clock()) > 0:
                await self._sleep(wait)
            if self._is_in_doubt():
                yield
                return
        yield

    def answered(self, model: Model) -> None:
        """Record an answer of a model."""
        self.heard = True
        self.answered_at = self._clock()
        self._answering.add(model)

    def failed(self, request: Request, error: ProviderError, *, began: float) -> None:
        """Record why a request failed that was sent at a time."""
        if error.status is not None:
            self.heard = True
        if _is_refusal(error, request):
            self._refusals[request.model, str(error)] += 1
        passing = error.retryable and error.status not in TOO_MANY
        if passing and began > self._failed_at:
            self._failures += 1
            self._failed_at = self._clock()
            self._first_failed_at = min(self._first_failed_at, self._failed_at)
            self._quiet_until = self._failed_at + self._policy.pause(self._failures, error)
            self.silences += error.status is None

    @property
    def seconds_in_doubt(self) -> float:
        """Seconds since the first failure of a host that has never answered, else 0."""
        return self._clock() - self._first_failed_at if self._is_in_doubt() else 0.0

    def refuses_all(self, model: Model, error: ProviderError) -> bool:
        """Return whether a model has answered nothing, and refused enough in an error's words."""
        refusals = self._refusals[model, str(error)]
        return model not in self._answering and refusals >= self._policy.same_refusals

    def stop(self, model: Model, why: str) -> str:
        """Stop a model, or all models of a host that has never replied; return the first reason."""
        self._stopped.setdefault(model if self.heard else None, why)
        return self.stopped(model)

    def stopped(self, model: Model) -> str:
        """Return why a model was stopped, "" if it was not."""
        return self._stopped.get(None) or self._stopped.get(model, "")

    def _is_in_doubt(self) -> bool:
        return self._failures > 0 and self.answered_at == -math.inf


def _is_refusal(error: ProviderError, request: Request) -> bool:
    """Return whether an error may be the same for every request to the model.

    That a host refuses tools is no refusal of what has none.
    """
    if error.status == HTTPStatus.OK:
        return True
    passing = error.retryable or error.status in TOO_MANY
    return not (passing or error.of_request or request.tools)
