"""The state of a host, as its replies show it: when to wait, and which models are stopped."""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from http import HTTPStatus

from pytest_upskill.models import Model, ProviderError, Request

OVERLOADED = frozenset({429, 529})
"""Statuses of a host that has too many requests."""

_HOPELESS_FAILURES = 3
_FIRST_BACKOFF_S = 0.5
_LONGEST_BACKOFF_S = 8.0
_LONGEST_RETRY_AFTER_S = 60.0


def backoff(failures: int, error: ProviderError, *, jitter: float = 0.0) -> float:
    """Return the seconds until the next attempt: they double, up to a limit.

    Args:
        failures: Number of failures so far.
        error: The last failure, which may ask for a longer pause.
        jitter: Share of the first pause to add, so that requests do not return together.
    """
    # A host may fail very often in a long session, and 2.0 ** 1024 is too large a number.
    doubled = 2.0 ** min(failures - 1, 10)
    seconds = min(_FIRST_BACKOFF_S * (doubled + jitter), _LONGEST_BACKOFF_S)
    return max(seconds, min(error.retry_after or 0.0, _LONGEST_RETRY_AFTER_S))


class HostHealth:
    """The state of a host, which decides when requests are sent to it and when to stop.

    A host that has failed and never answered is in doubt. It gets one request at a time, each after
    a pause: it may be starting, and if it is not running, many requests would fail like the first.

    Args:
        clock: A monotonic clock in seconds.
        sleep: Waits for a number of seconds.

    Attributes:
        has_replied: Whether it has ever replied, if only with an error.
        answered_at: Time of the latest answer, or minus infinity.
        silences: Number of failures without a reply, one after the other: a request that was sent
            before the latest failure does not count.
    """

    def __init__(
        self,
        clock: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]],
    ) -> None:
        self.has_replied = False
        self.answered_at = -math.inf
        self.silences = 0
        self._clock = clock
        self._sleep = sleep
        self._failures = 0
        self._failed_at = -math.inf
        self._first_failed_at = math.inf
        self._paused_until = -math.inf
        self._one_at_a_time = asyncio.Lock()
        self._models_that_answered: set[Model] = set()
        self._refusals: Counter[tuple[Model, str]] = Counter()
        self._stop_reasons: dict[Model | None, str] = {}
        """Why a model was stopped, or under None why all models were."""

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Wait until a request may be sent; the block sends it."""
        if self._is_in_doubt():
            async with self._one_at_a_time:
                while self._is_in_doubt() and (wait := self._paused_until - self._clock()) > 0:
                    await self._sleep(wait)
                if self._is_in_doubt():
                    yield
                    return
        yield

    def answered(self, model: Model) -> None:
        """Record an answer of a model."""
        self.has_replied = True
        self.answered_at = self._clock()
        self._models_that_answered.add(model)

    def failed(self, request: Request, error: ProviderError, *, sent_at: float) -> None:
        """Record why a request failed, and pause a host that is in doubt."""
        if error.status is not None:
            self.has_replied = True
        if _is_refusal(error, request):
            self._refusals[request.model, str(error)] += 1
        is_host_failure = error.retryable and error.status not in OVERLOADED
        # Requests that were in flight together fail together, and count once.
        if is_host_failure and sent_at > self._failed_at:
            self._failures += 1
            self._failed_at = self._clock()
            self._first_failed_at = min(self._first_failed_at, self._failed_at)
            self._paused_until = self._failed_at + backoff(self._failures, error)
            if error.status is None:
                self.silences += 1

    @property
    def seconds_in_doubt(self) -> float:
        """Seconds since the first failure of a host that has never answered, else 0."""
        return self._clock() - self._first_failed_at if self._is_in_doubt() else 0.0

    @property
    def seconds_paused(self) -> float:
        """Seconds until the next request to a host in doubt, else 0."""
        return max(0.0, self._paused_until - self._clock()) if self._is_in_doubt() else 0.0

    def is_hopeless(self, model: Model, errors: Sequence[ProviderError]) -> bool:
        """Return whether no request can succeed, after the errors that one of them got.

        That is the case if the host has never replied to any request, and three attempts in a row,
        of this request or of all, had no reply; or if the model has answered nothing, and three
        requests got the same error.
        """
        if not self.has_replied and max(len(errors), self.silences) >= _HOPELESS_FAILURES:
            return True
        refusals = self._refusals[model, str(errors[-1])] if errors else 0
        return model not in self._models_that_answered and refusals >= _HOPELESS_FAILURES

    def stop(self, model: Model, reason: str) -> str:
        """Stop a model, or all models of a host that has never replied.

        Returns:
            Why it was stopped: an earlier reason stays.
        """
        self._stop_reasons.setdefault(model if self.has_replied else None, reason)
        return self.stop_reason(model)

    def stop_reason(self, model: Model) -> str:
        """Return why a model was stopped, "" if it was not."""
        return self._stop_reasons.get(None) or self._stop_reasons.get(model, "")

    def _is_in_doubt(self) -> bool:
        return self._failures > 0 and self.answered_at == -math.inf


def _is_refusal(error: ProviderError, request: Request) -> bool:
    """Return whether every request to the model may get the same error.

    A host that refuses a request with tools may answer one without.
    """
    if error.status == HTTPStatus.OK:
        return True  # An error, or a web page, in place of an answer.
    is_temporary = error.retryable or error.status in OVERLOADED
    return not (is_temporary or error.of_request or request.tools)
