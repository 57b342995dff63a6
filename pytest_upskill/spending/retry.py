"""Retries of failed requests to one host: when to send an attempt, and when to give up."""

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

Once = Callable[[], Awaitable[Completion]]
"""Sends a request once, and raises a `ProviderError` with ``retryable`` set if that may help."""


@dataclass(slots=True)
class _Attempts:
    """The attempts at one completion."""

    request: Request
    started: float
    waited: float = 0.0
    """Seconds in line for slots, or in the host's queue; the deadline does not count them."""
    forgiven_timeouts: int = 0
    """Number of attempts that timed out, but whose seconds are in ``waited``."""
    errors: list[ProviderError] = field(default_factory=list)
    """Why each attempt failed so far."""


class Retries:
    """Sends requests to one host, and retries failed ones.

    An attempt waits for a slot of the `ConcurrencyLimiter`, then for its turn if `HostHealth` is in
    doubt about the host, and both record its outcome. While a request waits for a retry, it has no
    slot.

    Retries of a completion end at the deadline of `RetryPolicy`, or before it where they are
    hopeless. A model is stopped by an error that every request would get (bad key, unknown name),
    if it answers nothing and refuses several requests with the same message (a web page, a
    parameter it does not know), or if the host answers no request at all until a deadline. All
    models of a host are stopped if it never replies. Later requests to a stopped model fail
    immediately with the same message.

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
        self, request: Request, once: Once, *, has_own_timeout: bool = False
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
        self, once: Once, attempts: _Attempts, *, has_own_timeout: bool
    ) -> Completion:
        model, queued_at = attempts.request.model, self._clock()
        async with self._slots.slot() as ticket:
            attempts.waited += self._clock() - queued_at
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
        self, once: Once, ticket: SlotTicket, attempts: _Attempts
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
            self._forgive_timeout(ticket, attempts)
        elif error.status in OVERLOADED:
            self._slots.refused()
        else:
            self._slots.failed()

    def _forgive_timeout(self, ticket: SlotTicket, attempts: _Attempts) -> None:
        """Do not count the seconds of a timeout that other requests may have caused."""
        may_have_queued = self._slots.may_have_queued(ticket)
        limit = self._policy.queued_timeouts if may_have_queued else self._policy.long_timeouts
        if ticket.others_in_flight and attempts.forgiven_timeouts < limit:
            attempts.forgiven_timeouts += 1
            attempts.waited += self._clock() - ticket.sent_at

    def _seconds_trying(self, attempts: _Attempts) -> float:
        """Return the seconds since the first attempt was due, without those of waiting."""
        return self._clock() - attempts.started - attempts.waited

    def _must_give_up(self, attempts: _Attempts, pause: float) -> bool:
        """Return whether to give up instead of another attempt after a pause in seconds."""
        policy, health, error = self._policy, self._health, attempts.errors[-1]
        count = len(attempts.errors)
        if not health.has_replied and max(count, health.silences) >= policy.attempts_at_silence:
            return True
        if error.status == HTTPStatus.OK and count >= policy.attempts_at_broken:
            return True
        if health.refuses_all(attempts.request.model, error):
            return True
        is_down = health.answered_at < attempts.started and all(
            failure.status in _UNAVAILABLE and not failure.loading for failure in attempts.errors
        )
        limit = min(policy.deadline, policy.unavailable) if is_down else policy.deadline
        # A host in doubt gets one request at a time: one that has just begun may come after many.
        return max(self._seconds_trying(attempts), health.seconds_in_doubt) + pause > limit

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


def retries_to(
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
