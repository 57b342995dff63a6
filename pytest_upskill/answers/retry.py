"""Requests to one host: within the budget, at the host's pace, and with retries.

A host gets all requests that its width allows, from the first moment. A server with few slots puts
them in a queue, and one that works on all at once gets slower, so neither time is held against a
request as long as the host answers:

1. The timeout of a request restarts with each answer to a request that was sent earlier or at about
   the same time: until then this one may have waited behind it.
2. A timeout without any answer since the request was sent halves the width, once for all requests
   that were in flight together.
3. A refusal (HTTP 429 or 529) cuts the width to four fifths, at most once per 15 s.
4. The width grows by one, up to the maximum, after as many answers as it allows requests.

A failed attempt that another may avoid is repeated after a pause without a slot: about 0.5 s, then
twice as long each time, up to 8 s; or the host's ``Retry-After``, up to 60 s, if that is longer. A
request is given up after five repeats of attempts that took the whole timeout, or had a reply that
may be billed; after three attempts at a host that has never replied, or when rule 2 has applied
there three times; or once its attempts and pauses would take longer than 300 s, not counting
timeouts while other requests were in flight.

If the host has answered nothing meanwhile, or the error is fatal, its model is stopped, or all
models of a host that has never replied: later requests fail at once with the same message.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from copy import copy
from dataclasses import dataclass, field, replace
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from pytest_upskill.answers.budget import Budget, BudgetError
from pytest_upskill.answers.progress import ASKING, InFlight
from pytest_upskill.models import Client, Completion, Model, ProviderError, Request

if TYPE_CHECKING:
    from tenacity import AsyncRetrying, RetryCallState

_CUT = 0.8
_COOLDOWN_S = 15.0
_BURST_S = 1.0
"""Requests that are sent within this time may be served in any order."""

_OVERLOADED = frozenset({429, 529})
"""Statuses of a host that has too many requests."""
_FIRST_BACKOFF_S = 0.5
_LONGEST_BACKOFF_S = 8.0
_LONGEST_RETRY_AFTER_S = 60.0
_DEADLINE_S = 300.0
_MAX_REPEATS = 5
"""Maximum number of repeats of attempts that took the whole timeout, or had a reply that may be
billed."""
_MAX_UNANSWERED = 3
"""Maximum number of attempts at a host that has never replied."""

SendOnce = Callable[[], Awaitable[Completion]]
"""Sends a request once, and raises a `ProviderError` with ``retryable`` set if that may help."""


@dataclass(frozen=True, eq=False, slots=True)
class Slot:
    """A place among the requests in flight, and what was known when it was taken."""

    sent_at: float
    """Seconds of the clock."""
    answers_before: int
    """Number of answers of the host so far."""
    reply_timeout: asyncio.Timeout
    """Ends the wait for a reply."""


class Pace:
    """The requests in flight at one host.

    A request waits for a `slot` and is sent within `wait_for_reply`. Then `answered`, `refused` or
    `timed_out` is called while it still has its slot, or none of them after another failure.

    Args:
        maximum: Maximum number of requests in flight.
        timeout: Seconds until a reply must come.

    Attributes:
        width: Number of requests that may be in flight now.
        timeout: As given.
        halvings: How often the width was halved.
        in_flight: The slots that are taken.
        clock: A monotonic clock in seconds.
    """

    def __init__(self, maximum: int, *, timeout: float = math.inf) -> None:
        self.width = self._maximum = maximum
        self.timeout = timeout
        self.halvings = 0
        self.in_flight: set[Slot] = set()
        self.clock: Callable[[], float] = time.monotonic
        self._free = asyncio.Semaphore(maximum)
        self._surplus = 0
        """Slots above a width that was cut, removed as requests end."""
        self._answers = self._answers_at_width = 0
        self._refused_at = self._halved_at = -math.inf

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[Slot]:
        """Wait for a slot, and occupy it for the duration of the block."""
        await self._free.acquire()
        slot = Slot(self.clock(), self._answers, asyncio.timeout(None))
        self.in_flight.add(slot)
        try:
            yield slot
        finally:
            self.in_flight.remove(slot)
            self._release()

    @asynccontextmanager
    async def wait_for_reply(self, slot: Slot) -> AsyncIterator[None]:
        """Cancel the block, which sends a request, if no reply arrives in time.

        Raises:
            TimeoutError: There is no reply.
        """
        async with slot.reply_timeout:
            self._restart_timeout(slot)
            yield

    def answered(self, slot: Slot) -> None:
        """Record an answer."""
        self._answers += 1
        for other in self.in_flight - {slot}:
            if slot.sent_at <= other.sent_at + _BURST_S:
                self._restart_timeout(other)
        self._answers_at_width += 1
        if self.width < self._maximum and self._answers_at_width >= self.width:
            self.width, self._answers_at_width = self.width + 1, 0
            self._release()

    def refused(self) -> None:
        """Record that the host has too many requests."""
        if self.clock() - self._refused_at >= _COOLDOWN_S:
            self._refused_at = self.clock()
            self._cut(math.floor(self.width * _CUT))

    def timed_out(self, slot: Slot) -> None:
        """Record that there was no reply in time."""
        if self._answers == slot.answers_before and slot.sent_at >= self._halved_at:
            self._halved_at = self.clock()
            self.halvings += 1
            self._cut(self.width // 2)

    def _restart_timeout(self, slot: Slot) -> None:
        if not slot.reply_timeout.expired():
            slot.reply_timeout.reschedule(asyncio.get_running_loop().time() + self.timeout)

    def _cut(self, width: int) -> None:
        # Requests in flight are not cancelled: surplus slots are removed when these end.
        self._surplus += self.width - max(1, width)
        self.width, self._answers_at_width = max(1, width), 0

    def _release(self) -> None:
        if self._surplus:
            self._surplus -= 1
        else:
            self._free.release()


def repeating(
    *, may_help: Callable[[ProviderError], bool] = lambda error: error.retryable, **options: Any
) -> AsyncRetrying:
    """Return what calls a function again, after pauses, as long as its errors may be temporary.

    Args:
        may_help: Whether another call may avoid an error.
        options: Further options of tenacity, such as when to stop.
    """
    # Imported here: a run whose answers are all recorded needs none of it.
    from tenacity import AsyncRetrying, retry_if_exception

    is_temporary = retry_if_exception(
        lambda each: isinstance(each, ProviderError) and may_help(each)
    )
    return AsyncRetrying(retry=is_temporary, wait=_pause, reraise=True, **options)


@dataclass(slots=True)
class _Attempts:
    """The failed attempts at one completion so far."""

    request: Request
    started: float
    errors: list[ProviderError] = field(default_factory=list)
    """Why each failed."""
    seconds: float = 0.0
    """Time of attempts and pauses, not counting waits for a slot, and timeouts while other requests
    were in flight."""
    expensive: int = 0
    """Number of those that took the whole timeout, or had a reply that may be billed."""


@dataclass(eq=False, slots=True, kw_only=True)
class Retries:
    """Sends requests to one host, and retries failed ones."""

    pace: Pace
    """The requests in flight at the host, and the time until a reply."""
    host: str
    """Name of the host in messages."""
    activity: InFlight
    """The record of requests and waits, to which the senders of requests add theirs."""
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    """Waits for a number of seconds."""
    _has_replied: bool = field(default=False, init=False)
    """Whether the host has ever replied, if only with an error."""
    _answered_at: float = field(default=-math.inf, init=False)
    _stop_reasons: dict[Model | None, str] = field(default_factory=dict, init=False)
    """Why a model was stopped, or under None why all models were."""

    async def send(self, request: Request, once: SendOnce) -> Completion:
        """Send a request, with retries, and return the completion with the number of attempts.

        Raises:
            ProviderError: All attempts failed; the message contains their number.
            BudgetError: The first attempt could exceed the budget.
        """
        attempts = _Attempts(request, self.pace.clock())
        retrying = repeating(
            stop=partial(self._gives_up, attempts),
            before_sleep=partial(self._note_pause, attempts),
            sleep=self.sleep,
        )
        try:
            completion: Completion = await retrying(self._attempt, once, attempts)
        except BudgetError as error:
            if not attempts.errors:
                raise
            raise ProviderError(f"{attempts.errors[-1]} (not retried: {error})") from None
        except ProviderError as error:
            raise self._final(error, attempts) from error
        return replace(completion, attempts=len(attempts.errors) + 1)

    async def _attempt(self, once: SendOnce, attempts: _Attempts) -> Completion:
        model = attempts.request.model
        async with self.pace.slot() as slot:
            if reason := self._stop_reason(model):
                raise ProviderError(reason, fatal=True, billable=False)
            try:
                async with self.pace.wait_for_reply(slot):
                    completion = await once()
            except TimeoutError:
                error = ProviderError(
                    f"{model.label}: no reply from {self.host} within {self.pace.timeout:g} s: "
                    "raise --upskill-timeout, lower --upskill-concurrency or --upskill-max-tokens",
                    retryable=True,
                )
                self.pace.timed_out(slot)
                self._note_failure(error, slot, attempts, timed_out=True)
                raise error from None
            except ProviderError as error:
                self._note_failure(error, slot, attempts, timed_out=False)
                raise
            self._has_replied, self._answered_at = True, self.pace.clock()
            self.pace.answered(slot)
            return completion

    def _note_failure(
        self, error: ProviderError, slot: Slot, attempts: _Attempts, *, timed_out: bool
    ) -> None:
        attempts.errors.append(error)
        # A lost connection has no status, and is waited for.
        attempts.expensive += timed_out or (error.billable and error.status is not None)
        if not timed_out or self.pace.in_flight == {slot}:
            attempts.seconds += self.pace.clock() - slot.sent_at
        self._has_replied |= error.status is not None
        if error.status in _OVERLOADED:
            self.pace.refused()

    def _gives_up(self, attempts: _Attempts, state: RetryCallState) -> bool:
        """Return whether to give up instead of another attempt after a pause."""
        return (
            self._unanswered(attempts) >= _MAX_UNANSWERED
            or attempts.expensive > _MAX_REPEATS
            or attempts.seconds + state.upcoming_sleep > _DEADLINE_S
        )

    def _note_pause(self, attempts: _Attempts, state: RetryCallState) -> None:
        attempts.seconds += state.upcoming_sleep
        self.activity.pause(self.host, _reason_to_wait(attempts.errors[-1]), state.upcoming_sleep)

    def _unanswered(self, attempts: _Attempts) -> int:
        """Return how many attempts went without a reply, 0 once the host has ever replied.

        They are those of this request, or the halvings by all requests if these are more.
        """
        return 0 if self._has_replied else max(len(attempts.errors), self.pace.halvings)

    def _final(self, error: ProviderError, attempts: _Attempts) -> ProviderError:
        """Return the error of all attempts; stop the model if other requests would fail too."""
        final = copy(error)
        message, model = str(error), attempts.request.model
        count = max(len(attempts.errors), self._unanswered(attempts))
        if count > 1:
            message += f" (after {count} attempts in {self.pace.clock() - attempts.started:.0f} s)"
        # A malformed reply may be caused by this request; other retryable errors are the host's.
        is_host_error = error.retryable and error.status != HTTPStatus.OK
        if error.fatal or (is_host_error and self._answered_at < attempts.started):
            self._stop_reasons.setdefault(model if self._has_replied else None, message)
            message = self._stop_reason(model)
            final.fatal, final.retryable = True, False
        final.args = (message,)
        return final

    def _stop_reason(self, model: Model) -> str:
        """Return why a model was stopped, "" if it was not."""
        return self._stop_reasons.get(None) or self._stop_reasons.get(model, "")


def _pause(state: RetryCallState) -> float:
    """Return the seconds until the next attempt: they double, unless the host asks for more."""
    from tenacity import wait_exponential, wait_random

    assert state.outcome is not None
    error = state.outcome.exception()
    assert isinstance(error, ProviderError)
    # At random, as requests that failed together must not return together.
    doubled = wait_exponential(_FIRST_BACKOFF_S) + wait_random(max=_FIRST_BACKOFF_S)
    asked_for = min(error.retry_after or 0.0, _LONGEST_RETRY_AFTER_S)
    return max(min(doubled(state), _LONGEST_BACKOFF_S), asked_for)


def _reason_to_wait(error: ProviderError) -> str:
    if error.status is None:
        return "no reply"
    return {429: "rate limit", 529: "overloaded"}.get(error.status, f"HTTP {error.status}")


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
