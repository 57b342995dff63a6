"""Retries of failed requests."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TypeVar

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception, wait_exponential_jitter

from pytest_upskill.completion import ProviderError, Request
from pytest_upskill.model import Model
from pytest_upskill.spending.budget import BudgetError
from pytest_upskill.spending.host_health import HostHealth
from pytest_upskill.spending.in_flight import InFlight
from pytest_upskill.spending.limiter import ConcurrencyLimiter, Sent
from pytest_upskill.spending.retry_policy import RetryPolicy

T = TypeVar("T")

_TOO_MANY = frozenset({429, 529})
_UNAVAILABLE = frozenset({502, 503})
"""Statuses of a host that is down, or of the gateway before it."""


@dataclass(slots=True)
class _Course:
    """The progress of the attempts at one completion."""

    request: Request
    started: float
    timed: bool
    in_line: float = 0.0
    """Seconds of waiting for slots, or in the host's queue, which do not count."""
    queued: int = 0
    """Number of attempts that timed out in the host's queue."""
    failed: list[ProviderError] = field(default_factory=list)
    """The errors of the failed attempts."""


class Retries:
    """Sends requests to one endpoint, and retries failed ones.

    A request occupies a slot while it is in flight, but not while it waits for a retry. A host that
    has failed and never answered gets one request at a time, after a pause. A model is
    stopped by an error that every request would get (bad key, unknown name), if it answers nothing
    and refuses several requests in the same words (a web page, a parameter it does not know), or
    if the host answers no request at all until the deadline of one completion. All models of a host
    are stopped if there is no reply at all from it. Later requests to a stopped model fail
    immediately with the same message.

    Args:
        slots: The limit of requests in flight at the host, and of the time until a reply.
        host: Name of the host in messages.
        activity: The record of waits.
        patience: The limits of retries.
        sleep: Waits for a number of seconds.
        clock: A monotonic clock in seconds.
    """

    def __init__(
        self,
        *,
        slots: ConcurrencyLimiter,
        host: str,
        activity: InFlight,
        patience: RetryPolicy | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._slots = slots
        self._host = host
        self._activity = activity
        self._patience = patience = patience or RetryPolicy()
        self._sleep = sleep
        self._clock = clock
        self._backoff = wait_exponential_jitter(
            multiplier=patience.first_backoff,
            max=patience.longest_backoff,
            jitter=patience.first_backoff,
        )
        self._down = ""  # why there is no reply from the host
        self._stopped: dict[Model, str] = {}
        self._answering: set[Model] = set()
        self._refusals: Counter[tuple[Model, str]] = Counter()
        self._health = HostHealth(patience, clock)

    async def send(
        self, request: Request, once: Callable[[], Awaitable[T]], *, timed: bool = False
    ) -> tuple[T, int]:
        """Send a request, with retries, and return the result and the number of attempts.

        Args:
            request: What is requested.
            once: Sends the request once; an error that may pass has ``retryable``.
            timed: Whether ``once`` has timeouts of its own, as for a stream.

        Raises:
            ProviderError: All attempts failed; the message contains their number.
            BudgetError: The first attempt could exceed the budget.
        """
        course = _Course(request, self._clock(), timed)
        retrying = AsyncRetrying(
            retry=retry_if_exception(_may_pass),
            wait=self._pause,
            stop=lambda state: self._out_of_patience(state, course),
            before_sleep=self._note,
            sleep=self._sleep,
            reraise=True,
        )
        try:
            result: T = await retrying(self._attempt, once, course)
        except ProviderError as error:
            attempts = retrying.statistics["attempt_number"]
            raise self._give_up(error, attempts, course) from None
        except BudgetError as error:
            if not course.failed:
                raise
            raise ProviderError(f"{course.failed[-1]} (not retried: {error})") from None
        return result, retrying.statistics["attempt_number"]

    async def _attempt(self, once: Callable[[], Awaitable[T]], course: _Course) -> T:
        lined_up = self._clock()
        async with self._slots.slot() as sent:
            course.in_line += self._clock() - lined_up
            async with self._health.turn(self._sleep):
                return await self._sent(once, sent, course)

    async def _sent(self, once: Callable[[], Awaitable[T]], sent: Sent, course: _Course) -> T:
        model, began = course.request.model, self._clock()
        if stopped := self._down or self._stopped.get(model):
            raise ProviderError(stopped, fatal=True)
        try:
            result = await (once() if course.timed else self._in_time(once, sent, model))
        except ProviderError as error:
            self._learn(error, sent, course)
            if error.retryable and error.status not in _TOO_MANY:
                self._health.failed(began, error, pause=self._asked_pause(error))
            raise
        self._health.answered()
        self._answering.add(model)
        self._slots.answered(sent)
        return result

    async def _in_time(self, once: Callable[[], Awaitable[T]], sent: Sent, model: Model) -> T:
        try:
            async with self._slots.patience(sent):
                return await once()
        except TimeoutError:
            raise ProviderError(
                f"{model.label}: no reply from {self._host} within {self._slots.timeout:g} s: "
                "raise --upskill-timeout, or lower --upskill-max-tokens",
                retryable=True,
                timed_out=True,
            ) from None

    def _learn(self, error: ProviderError, sent: Sent, course: _Course) -> None:
        course.failed.append(error)
        if error.status is not None:
            self._health.heard = True
        if _is_refusal(error, course.request):
            self._refusals[course.request.model, str(error)] += 1
        if error.timed_out:
            queued = self._slots.timed_out(sent)
            forgiven = self._patience.queued_timeouts if queued else self._patience.long_timeouts
            if sent.others and course.queued < forgiven:
                course.queued += 1
                course.in_line += self._clock() - sent.at
        elif error.status in _TOO_MANY:
            self._slots.refused()
        else:
            self._slots.failed()

    def _pause(self, state: RetryCallState) -> float:
        """Return the seconds until the next attempt, at least what the server asks for."""
        return max(self._backoff(state), self._asked_pause(_error(state)))

    def _asked_pause(self, error: ProviderError) -> float:
        return min(error.retry_after or 0.0, self._patience.longest_retry_after)

    def _note(self, state: RetryCallState) -> None:
        self._activity.pause(self._host, _reason(_error(state)), state.upcoming_sleep)

    def _asking_for(self, course: _Course) -> float:
        """Return the seconds since the request for a completion, without the wait for slots."""
        return self._clock() - course.started - course.in_line

    def _out_of_patience(self, state: RetryCallState, course: _Course) -> bool:
        attempts = max(state.attempt_number, self._health.silences)
        if not self._health.heard and attempts >= self._patience.attempts_at_silence:
            return True
        error = _error(state)
        broken = error.status == HTTPStatus.OK
        if broken and state.attempt_number >= self._patience.attempts_at_broken:
            return True
        if self._refuses_all(course.request.model, error):
            return True
        limit = self._patience.deadline
        if self._is_unavailable(course):
            limit = min(limit, self._patience.unavailable)
        # In doubt, requests take turns: one that just began may be the last after many.
        asking = max(self._asking_for(course), self._health.in_doubt_for)
        return asking + state.upcoming_sleep > limit

    def _is_unavailable(self, course: _Course) -> bool:
        """Return whether the host has returned only status 502 and 503 since the request."""
        down = all(e.status in _UNAVAILABLE and not e.loading for e in course.failed)
        return down and self._health.answered_at < course.started

    def _refuses_all(self, model: Model, error: ProviderError) -> bool:
        """Return whether a model has answered nothing, and refused enough in an error's words."""
        refusals = self._refusals[model, str(error)]
        return model not in self._answering and refusals >= self._patience.same_refusals

    def _give_up(self, error: ProviderError, attempts: int, course: _Course) -> ProviderError:
        """Make the final error of a completion; stop the model if other requests would fail too."""
        message, model = str(error), course.request.model
        seconds = self._asking_for(course)
        if not self._health.heard:
            attempts = max(attempts, self._health.silences)
            seconds = self._clock() - course.started
        if attempts > 1:
            message += f" (after {attempts} attempts in {seconds:.0f} s)"
        # A malformed reply may be caused by this request; other retryable errors are the host's.
        ails = error.retryable and error.status != HTTPStatus.OK
        hopeless = (
            error.fatal
            or self._refuses_all(model, error)
            or (ails and self._health.answered_at < course.started)
        )
        if hopeless:
            if not self._health.heard and error.status is None:
                self._down = self._down or message
            message = self._down or self._stopped.setdefault(model, message)
        return ProviderError(
            message,
            status=error.status,
            retry_after=error.retry_after,
            fatal=hopeless,
            billable=error.billable,
        )


def _error(state: RetryCallState) -> ProviderError:
    """Return the error of the last attempt."""
    error = state.outcome.exception() if state.outcome else None
    assert isinstance(error, ProviderError)
    return error


def _reason(error: ProviderError) -> str:
    """Return the reason for a wait in a word or two."""
    if error.status is None:
        return "no reply"
    return {429: "rate limit", 529: "overloaded"}.get(error.status, f"HTTP {error.status}")


def _is_refusal(error: ProviderError, request: Request) -> bool:
    """Return whether an error may be the same for every request to the model.

    That a host refuses tools is no refusal of what has none.
    """
    if error.status == HTTPStatus.OK:
        return True
    passing = error.retryable or error.status in _TOO_MANY
    return not (passing or error.of_request or request.tools)


def _may_pass(error: BaseException) -> bool:
    return isinstance(error, ProviderError) and error.retryable
