"""Retries of failed requests to one host."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from http import HTTPStatus

from pytest_upskill.completion import Completion, ProviderError, Request
from pytest_upskill.spending.budget import BudgetError
from pytest_upskill.spending.host_health import TOO_MANY, HostHealth
from pytest_upskill.spending.in_flight import InFlight
from pytest_upskill.spending.limiter import START_AT_CUSTOM_HOST, ConcurrencyLimiter, SlotTicket
from pytest_upskill.spending.retry_policy import RetryPolicy

_UNAVAILABLE = frozenset({502, 503})
"""Statuses of a host that is down, or of the gateway before it."""

Once = Callable[[], Awaitable[Completion]]
"""Sends a request once; an error that may pass has ``retryable``."""


@dataclass(slots=True)
class _Attempts:
    """The attempts at one completion."""

    request: Request
    started: float
    in_line: float = 0.0
    """Seconds of waiting for slots, or in the host's queue, which do not count."""
    queued: int = 0
    """Number of attempts that timed out in the host's queue."""
    errors: list[ProviderError] = field(default_factory=list)
    """Why they failed."""


class Retries:
    """Sends requests to one host, and retries failed ones.

    An attempt waits for a slot, which `ConcurrencyLimiter` gives, then for its turn if the host is
    in doubt, as `HostHealth` knows. Its outcome is told to both. While a request waits for a retry,
    it has no slot.

    Retries of a completion end at the deadline of `RetryPolicy`, or before it where they are
    hopeless. A model is stopped by an error that every request would get (bad key, unknown name),
    if it answers nothing and refuses several requests in the same words (a web page, a parameter
    it does not know), or if the host answers no request at all until a deadline. All models of a
    host are stopped if there is no reply at all from it. Later requests to a stopped model fail
    immediately with the same message.

    Args:
        slots: The limit of requests in flight at the host, and of the time until a reply.
        host: Name of the host in messages.
        activity: The record of requests and waits, which those who use this add to.
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

    async def send(self, request: Request, once: Once, *, timed: bool = False) -> Completion:
        """Send a request, with retries, and return the completion with the number of attempts.

        Args:
            request: What is requested.
            once: Sends the request once.
            timed: Whether ``once`` has timeouts of its own, as for a stream.

        Raises:
            ProviderError: All attempts failed; the message contains their number.
            BudgetError: The first attempt could exceed the budget.
        """
        attempts = _Attempts(request, self._clock())
        while True:
            try:
                completion = await self._attempt(once, attempts, timed=timed)
            except BudgetError as error:
                if not attempts.errors:
                    raise
                raise ProviderError(f"{attempts.errors[-1]} (not retried: {error})") from None
            except ProviderError as error:
                jitter = random.random()  # noqa: S311  no secret
                pause = self._policy.pause(len(attempts.errors), error, jitter=jitter)
                if not error.retryable or self._must_give_up(attempts, pause):
                    raise self._give_up(error, attempts) from None
                self.activity.pause(self._host, _reason(error), pause)
            else:
                return replace(completion, attempts=len(attempts.errors) + 1)
            await self._sleep(pause)

    async def _attempt(self, once: Once, attempts: _Attempts, *, timed: bool) -> Completion:
        model, lined_up = attempts.request.model, self._clock()
        async with self._slots.slot() as ticket:
            attempts.in_line += self._clock() - lined_up
            async with self._health.turn():
                if stopped := self._health.stopped(model):
                    raise ProviderError(stopped, fatal=True, billable=False)
                began = self._clock()
                try:
                    completion = await (
                        once() if timed else self._send_in_time(once, ticket, attempts)
                    )
                except ProviderError as error:
                    self._record_failure(error, ticket, attempts, began)
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
        self, error: ProviderError, ticket: SlotTicket, attempts: _Attempts, began: float
    ) -> None:
        attempts.errors.append(error)
        self._health.failed(attempts.request, error, began=began)
        if error.timed_out:
            self._slots.timed_out(ticket)
            may_have_queued = self._slots.may_have_queued(ticket)
            forgiven = (
                self._policy.queued_timeouts if may_have_queued else self._policy.long_timeouts
            )
            if ticket.others_in_flight and attempts.queued < forgiven:
                attempts.queued += 1
                attempts.in_line += self._clock() - ticket.sent_at
        elif error.status in TOO_MANY:
            self._slots.refused()
        else:
            self._slots.failed()

    def _seconds_asking(self, attempts: _Attempts) -> float:
        """Return the seconds since the request for a completion, without the wait for slots."""
        return self._clock() - attempts.started - attempts.in_line

    def _must_give_up(self, attempts: _Attempts, pause: float) -> bool:
        """Return whether there is to be no further attempt after a pause in seconds."""
        policy, health, error = self._policy, self._health, attempts.errors[-1]
        tried = len(attempts.errors)
        if not health.heard and max(tried, health.silences) >= policy.attempts_at_silence:
            return True
        if error.status == HTTPStatus.OK and tried >= policy.attempts_at_broken:
            return True
        if health.refuses_all(attempts.request.model, error):
            return True
        down = all(each.status in _UNAVAILABLE and not each.loading for each in attempts.errors)
        down = down and health.answered_at < attempts.started
        limit = min(policy.deadline, policy.unavailable) if down else policy.deadline
        # In doubt, requests take turns: one that just began may be the last after many.
        return max(self._seconds_asking(attempts), health.seconds_in_doubt) + pause > limit

    def _give_up(self, error: ProviderError, attempts: _Attempts) -> ProviderError:
        """Make the final error of a completion; stop the model if other requests would fail too."""
        message, model, health = str(error), attempts.request.model, self._health
        tried, seconds = len(attempts.errors), self._seconds_asking(attempts)
        if not health.heard:
            tried, seconds = max(tried, health.silences), self._clock() - attempts.started
        if tried > 1:
            message += f" (after {tried} attempts in {seconds:.0f} s)"
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
    host: str, *, most: int, custom: bool, timeout: float, activity: InFlight
) -> Retries:
    """Return what sends requests to a host and retries failed ones.

    Args:
        host: Name of the host in messages.
        most: Maximum number of requests in flight.
        custom: Whether it is a host of the user's own, which gets few requests at first.
        timeout: Seconds until a reply must come.
        activity: The record of waits.
    """
    slots = ConcurrencyLimiter(
        most, start=START_AT_CUSTOM_HOST if custom else None, timeout=timeout
    )
    return Retries(slots=slots, host=host, activity=activity)


def _reason(error: ProviderError) -> str:
    """Return the reason for a wait in a word or two."""
    if error.status is None:
        return "no reply"
    return {429: "rate limit", 529: "overloaded"}.get(error.status, f"HTTP {error.status}")
