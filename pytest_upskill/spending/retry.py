"""Retries of failed requests to one host: when to send an attempt, and when to give up.

An attempt waits for a slot of the `ConcurrencyLimiter`, then for its turn if `HostHealth` is in
doubt about the host, and both record its outcome. After a failure that another attempt may avoid,
the request waits without a slot: about 0.5 s, then twice as long each time, up to 8 s; or for the
host's ``Retry-After``, up to 60 s, if that is longer. It is given up at the first of these
(`RetryPolicy` has the numbers):

1. The host has never replied to any request, and three attempts in a row, of this request or of
   all, had no reply.
2. Five replies with status 200 were malformed: each may be billed.
3. The model has answered nothing, and three requests got the same error.
4. The next attempt would start later than 300 s after the first was due, or 60 s if the host is
   down: since then it has answered nothing, and this request got only 502 and 503. Time in line for
   a slot does not count, nor do the first timeouts that other requests may have caused. At a host
   in doubt, the time since its first failure counts instead, if that is longer.
5. The next attempt could exceed the budget.

If the error would meet every request, the model is stopped, or all models of a host that has never
replied: later requests fail at once with the same message.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from http import HTTPStatus

from pytest_upskill.completion import Completion, ProviderError, Request
from pytest_upskill.spending.budget import BudgetError
from pytest_upskill.spending.host_health import OVERLOADED, HostHealth
from pytest_upskill.spending.in_flight import InFlight
from pytest_upskill.spending.limiter import START_AT_CUSTOM_HOST, ConcurrencyLimiter, SlotTicket
from pytest_upskill.spending.retry_policy import RetryPolicy

_UNAVAILABLE = frozenset({502, 503})
"""Statuses of a host that is down, or of the gateway before it."""

SendOnce = Callable[[], Awaitable[Completion]]
"""Sends a request once, and raises a `ProviderError` with ``retryable`` set if that may help."""


@dataclass(slots=True)
class _Attempts:
    """The attempts at one completion."""

    request: Request
    started: float
    excluded_seconds: float = 0.0
    """Seconds that the deadline does not count: in line for slots, or in the host's queue."""
    excluded_timeouts: int = 0
    """Number of attempts that timed out, and whose seconds are excluded."""
    errors: list[ProviderError] = field(default_factory=list)
    """Why each attempt failed so far."""


class Retries:
    """Sends requests to one host, and retries failed ones.

    Args:
        slots: The limit of requests in flight at the host, and of the time until a reply.
        host: Name of the host in messages.
        activity: The record of requests and waits, to which the senders of requests add theirs.
        policy: The limits of retries.
        sleep: Waits for a number of seconds.
        clock: A monotonic clock in seconds.
    """

    def __init__(
        self,
        *,
        slots: ConcurrencyLimiter,
        host: str,
        activity: InFlight,
        policy: RetryPolicy | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._slots = slots
        self._host = host
        self.activity = activity
        self._policy = policy or RetryPolicy()
        self._sleep = sleep
        self._clock = clock
        self._health = HostHealth(self._policy, clock, sleep)

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
        while True:
            try:
                completion = await self._attempt(once, attempts, has_own_timeout=has_own_timeout)
            except BudgetError as error:
                if not attempts.errors:
                    raise
                raise ProviderError(f"{attempts.errors[-1]} (not retried: {error})") from None
            except ProviderError as error:
                jitter = random.random()  # noqa: S311  no secret
                pause = self._policy.pause(len(attempts.errors), error, jitter=jitter)
                if not error.retryable or self._must_give_up(attempts, pause):
                    raise self._final_error(error, attempts) from None
                self.activity.pause(self._host, _reason(error), pause)
            else:
                return replace(completion, attempts=len(attempts.errors) + 1)
            await self._sleep(pause)

    async def _attempt(
        self, once: SendOnce, attempts: _Attempts, *, has_own_timeout: bool
    ) -> Completion:
        model, queued_at = attempts.request.model, self._clock()
        async with self._slots.slot() as ticket:
            attempts.excluded_seconds += self._clock() - queued_at
            async with self._health.turn():
                if reason := self._health.stop_reason(model):
                    raise ProviderError(reason, fatal=True, billable=False)
                sent_at = self._clock()
                try:
                    if has_own_timeout:
                        completion = await once()
                    else:
                        completion = await self._send_in_time(once, ticket, attempts)
                except ProviderError as error:
                    self._record_failure(error, ticket, attempts, sent_at)
                    raise
                self._health.answered(model)
                self._slots.answered(ticket)
                return completion

    async def _send_in_time(
        self, once: SendOnce, ticket: SlotTicket, attempts: _Attempts
    ) -> Completion:
        try:
            async with self._slots.wait_for_reply(ticket):
                return await once()
        except TimeoutError:
            raise ProviderError(
                f"{attempts.request.model.label}: no reply from {self._host} within "
                f"{self._slots.timeout:g} s: raise --upskill-timeout, or lower "
                "--upskill-max-tokens",
                retryable=True,
                timed_out=True,
            ) from None

    def _record_failure(
        self, error: ProviderError, ticket: SlotTicket, attempts: _Attempts, sent_at: float
    ) -> None:
        attempts.errors.append(error)
        self._health.failed(attempts.request, error, sent_at=sent_at)
        if error.timed_out:
            self._slots.timed_out(ticket)
            self._exclude_from_deadline(ticket, attempts)
        elif error.status in OVERLOADED:
            self._slots.refused()
        else:
            self._slots.failed()

    def _exclude_from_deadline(self, ticket: SlotTicket, attempts: _Attempts) -> None:
        """Exclude the seconds of a timeout that other requests may have caused."""
        may_have_queued = self._slots.may_have_queued(ticket)
        limit = (
            self._policy.max_queued_timeouts if may_have_queued else self._policy.max_long_timeouts
        )
        if ticket.others_in_flight and attempts.excluded_timeouts < limit:
            attempts.excluded_timeouts += 1
            attempts.excluded_seconds += self._clock() - ticket.sent_at

    def _seconds_trying(self, attempts: _Attempts) -> float:
        """Return the seconds since the first attempt was due that count towards the deadline."""
        return self._clock() - attempts.started - attempts.excluded_seconds

    def _must_give_up(self, attempts: _Attempts, pause: float) -> bool:
        """Return whether to give up instead of another attempt after a pause in seconds."""
        policy, health, error = self._policy, self._health, attempts.errors[-1]
        count = len(attempts.errors)
        if not health.has_replied and max(count, health.silences) >= policy.max_silent_attempts:
            return True
        if error.status == HTTPStatus.OK and count >= policy.max_malformed_replies:
            return True
        if health.refuses_all(attempts.request.model, error):
            return True
        is_down = health.answered_at < attempts.started and all(
            failure.status in _UNAVAILABLE and not failure.loading for failure in attempts.errors
        )
        deadline = policy.outage_deadline if is_down else policy.deadline
        # A host in doubt gets one request at a time: one that has just begun may come after many.
        return max(self._seconds_trying(attempts), health.seconds_in_doubt) + pause > deadline

    def _final_error(self, error: ProviderError, attempts: _Attempts) -> ProviderError:
        """Make the final error of a completion; stop the model if other requests would fail too."""
        message, model, health = str(error), attempts.request.model, self._health
        count, seconds = len(attempts.errors), self._seconds_trying(attempts)
        if not health.has_replied:
            count, seconds = max(count, health.silences), self._clock() - attempts.started
        if count > 1:
            message += f" (after {count} attempts in {seconds:.0f} s)"
        # A malformed reply may be caused by this request; other retryable errors are the host's.
        is_host_error = error.retryable and error.status != HTTPStatus.OK
        hopeless = (
            error.fatal
            or health.refuses_all(model, error)
            or (is_host_error and health.answered_at < attempts.started)
        )
        return ProviderError(
            health.stop(model, message) if hopeless else message,
            status=error.status,
            retry_after=error.retry_after,
            fatal=hopeless,
            billable=error.billable,
        )


def make_retries(
    host: str, *, concurrency: int, custom: bool, timeout: float, activity: InFlight
) -> Retries:
    """Make the retries of requests to a host.

    Args:
        host: Name of the host in messages.
        concurrency: Maximum number of requests in flight.
        custom: Whether it is a server of the user's own, which gets few requests at first.
        timeout: Seconds until a reply must come.
        activity: The record of requests and waits.
    """
    start = START_AT_CUSTOM_HOST if custom else None
    slots = ConcurrencyLimiter(concurrency, start=start, timeout=timeout)
    return Retries(slots=slots, host=host, activity=activity)


def _reason(error: ProviderError) -> str:
    """Return the reason for a wait in a word or two."""
    if error.status is None:
        return "no reply"
    return {429: "rate limit", 529: "overloaded"}.get(error.status, f"HTTP {error.status}")
