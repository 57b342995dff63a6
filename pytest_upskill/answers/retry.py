"""Requests to one host: within the budget, at the host's pace, and with retries.

A failed attempt that another may avoid is repeated after a pause without a slot: about 0.5 s, then
twice as long each time, up to 8 s; or the host's ``Retry-After``, up to 60 s, if that is longer. A
request is given up at the first of these (`RetryPolicy` has the numbers):

1. It was repeated five times after attempts that each took the whole timeout or may each be billed.
2. Its next attempt would start later than 300 s after the first was due, or 60 s if the host is
   down: since then it has answered nothing, and this request got only 502 and 503. Time in line for
   a slot does not count, nor do timeouts that other requests in flight may have caused.
3. No request can succeed, as `HostHealth` says: then the model is stopped as well, or all models of
   a host that has never replied, and later requests fail at once with the same message.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from functools import partial
from http import HTTPStatus

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception

from pytest_upskill.answers.budget import Budget, BudgetError
from pytest_upskill.answers.host_health import OVERLOADED, HostHealth, backoff
from pytest_upskill.answers.pace import Pace, Slot
from pytest_upskill.answers.progress import ASKING, InFlight
from pytest_upskill.models import Client, Completion, ProviderError, Request

_UNAVAILABLE = frozenset({502, 503})
"""Statuses of a host that is down, or of the gateway before it."""

SendOnce = Callable[[], Awaitable[Completion]]
"""Sends a request once, and raises a `ProviderError` with ``retryable`` set if that may help."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """When a request is given up; times in seconds."""

    deadline: float = 300.0
    """Time after which no new attempt starts."""
    outage_deadline: float = 60.0
    """Replaces ``deadline`` if the host returns only 502 and 503 and is not loading a model."""
    max_repeats: int = 5
    """Maximum repeats of attempts that took the whole timeout, or that may be billed."""


@dataclass(slots=True)
class _Attempts:
    """The attempts at one completion."""

    request: Request
    started: float
    uncounted: float = 0.0
    """Seconds that the deadline does not count."""
    errors: list[ProviderError] = field(default_factory=list)
    """Why each attempt failed so far."""


class Retries:
    """Sends requests to one host, and retries failed ones.

    Args:
        pace: The requests in flight at the host, and the time until a reply.
        host: Name of the host in messages.
        activity: The record of requests and waits, to which the senders of requests add theirs.
        policy: When a request is given up.
        sleep: Waits for a number of seconds.
        clock: A monotonic clock in seconds.
    """

    def __init__(
        self,
        *,
        pace: Pace,
        host: str,
        activity: InFlight,
        policy: RetryPolicy | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._pace = pace
        self._host = host
        self.activity = activity
        self._policy = policy or RetryPolicy()
        self._sleep = sleep
        self._clock = clock
        self._health = HostHealth(clock, sleep)

    async def send(
        self, request: Request, once: SendOnce, *, has_own_timeout: bool = False
    ) -> Completion:
        """Send a request, with retries, and return the completion with the number of attempts.

        Args:
            request: The request.
            once: Sends the request once.
            has_own_timeout: Whether ``once`` limits its time itself, as for a stream.

        Raises:
            ProviderError: All attempts failed; the message contains their number.
            BudgetError: The first attempt could exceed the budget.
        """
        attempts = _Attempts(request, self._clock())
        retrying = AsyncRetrying(
            retry=retry_if_exception(_may_help),
            wait=_pause,
            stop=partial(self._gives_up, attempts),
            before_sleep=self._show_pause,
            sleep=self._sleep,
            reraise=True,
        )
        try:
            completion: Completion = await retrying(self._attempt, once, attempts, has_own_timeout)
        except BudgetError as error:
            if not attempts.errors:
                raise
            raise ProviderError(f"{attempts.errors[-1]} (not retried: {error})") from None
        except ProviderError as error:
            raise self._final_error(error, attempts) from None
        return replace(completion, attempts=len(attempts.errors) + 1)

    async def _attempt(
        self, once: SendOnce, attempts: _Attempts, has_own_timeout: bool
    ) -> Completion:
        model, queued_at = attempts.request.model, self._clock()
        async with self._pace.slot() as slot:
            attempts.uncounted += self._clock() - queued_at
            async with self._health.turn():
                if reason := self._health.stop_reason(model):
                    raise ProviderError(reason, fatal=True, billable=False)
                sent_at = self._clock()
                try:
                    if has_own_timeout:
                        completion = await once()
                    else:
                        completion = await self._send_in_time(once, slot, model.label)
                except ProviderError as error:
                    self._record_failure(error, slot, attempts, sent_at)
                    raise
                self._health.answered(model)
                self._pace.answered(slot)
                return completion

    async def _send_in_time(self, once: SendOnce, slot: Slot, label: str) -> Completion:
        try:
            async with self._pace.wait_for_reply(slot):
                return await once()
        except TimeoutError:
            raise ProviderError(
                f"{label}: no reply from {self._host} within {self._pace.timeout:g} s: "
                "raise --upskill-timeout, or lower --upskill-max-tokens",
                retryable=True,
                timed_out=True,
            ) from None

    def _record_failure(
        self, error: ProviderError, slot: Slot, attempts: _Attempts, sent_at: float
    ) -> None:
        attempts.errors.append(error)
        self._health.failed(attempts.request, error, sent_at=sent_at)
        if error.status in OVERLOADED:
            self._pace.refused()
        elif error.timed_out:
            self._pace.timed_out(slot)
            if self._pace.had_company(slot):
                attempts.uncounted += self._clock() - slot.sent_at

    def _show_pause(self, state: RetryCallState) -> None:
        error = _error_of(state)
        if error.status is None:
            why = "no reply"
        else:
            why = {429: "rate limit", 529: "overloaded"}.get(error.status, f"HTTP {error.status}")
        seconds = max(state.upcoming_sleep, self._health.seconds_paused)
        self.activity.pause(self._host, why, seconds)

    def _gives_up(self, attempts: _Attempts, state: RetryCallState) -> bool:
        """Return whether to give up instead of another attempt after a pause."""
        policy, errors = self._policy, attempts.errors
        if self._health.is_hopeless(attempts.request.model, errors):
            return True
        if sum(map(_is_expensive, errors)) > policy.max_repeats:
            return True
        is_down = self._health.answered_at < attempts.started and all(
            error.status in _UNAVAILABLE and not error.loading for error in errors
        )
        deadline = policy.outage_deadline if is_down else policy.deadline
        return self._seconds_trying(attempts) + state.upcoming_sleep > deadline

    def _seconds_trying(self, attempts: _Attempts) -> float:
        """Return the seconds that count towards the deadline.

        A host in doubt gets one request at a time: one that has just begun may come after many.
        """
        own = self._clock() - attempts.started - attempts.uncounted
        return max(own, self._health.seconds_in_doubt)

    def _final_error(self, error: ProviderError, attempts: _Attempts) -> ProviderError:
        """Make the final error of a completion; stop the model if other requests would fail too."""
        message, health = str(error), self._health
        count = len(attempts.errors)
        if not health.has_replied:
            count = max(count, health.silences)
        if count > 1:
            message += f" (after {count} attempts in {self._clock() - attempts.started:.0f} s)"
        # A malformed reply may be caused by this request; other retryable errors are the host's.
        is_host_error = error.retryable and error.status != HTTPStatus.OK
        stops = (
            error.fatal
            or health.is_hopeless(attempts.request.model, attempts.errors)
            or (is_host_error and health.answered_at < attempts.started)
        )
        return ProviderError(
            health.stop(attempts.request.model, message) if stops else message,
            status=error.status,
            retryable=error.retryable and not stops,
            retry_after=error.retry_after,
            fatal=stops,
            billable=error.billable,
        )


class HostClient:
    """A client that sends requests within the budget, and retries failed ones.

    Args:
        client: The client of the SDK or of a plugin, which sends a request once.
        retries: The retries at its host.
        budget: The budget of the session.
    """

    def __init__(self, client: Client, retries: Retries, budget: Budget) -> None:
        self._client = client
        self._retries = retries
        self._budget = budget

    async def complete(self, request: Request) -> Completion:
        """Send a request, with retries, and return the completion with its cost.

        Raises:
            ProviderError: There is no usable reply.
            BudgetError: The first attempt could exceed the budget.
        """
        return await self._retries.send(request, partial(self._send_once, request))

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def _send_once(self, request: Request) -> Completion:
        """Send a request once; each attempt may cost as much as the first."""
        reservation = await self._budget.reserve(request)
        completion, billable = None, True  # unless the host is known not to bill the request
        try:
            with self._retries.activity.doing(ASKING):
                completion = await self._client.complete(request)
        except ProviderError as error:
            billable = error.billable
            raise
        finally:
            cost = await self._budget.settle(reservation, completion, billable)
            await self._budget.release(reservation)
        return replace(completion, cost_usd=cost)


def _error_of(state: RetryCallState) -> ProviderError:
    assert state.outcome is not None
    error = state.outcome.exception()
    assert isinstance(error, ProviderError)
    return error


def _may_help(error: BaseException) -> bool:
    return isinstance(error, ProviderError) and error.retryable


def _is_expensive(error: ProviderError) -> bool:
    return error.timed_out or error.status == HTTPStatus.OK


def _pause(state: RetryCallState) -> float:
    return backoff(state.attempt_number, _error_of(state), jitter=random.random())  # noqa: S311
