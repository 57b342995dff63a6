"""A host that is in trouble, and a client that retries it in made-up time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field

from pytest_upskill.answers.budget import Budget
from pytest_upskill.answers.prices import Prices
from pytest_upskill.answers.progress import InFlight
from pytest_upskill.answers.retry import HostClient, Pace, Retries
from pytest_upskill.models import Client, Completion, Model, ProviderError, Request, parse_model

M = parse_model("m=x@http://a.invalid/v1")
N = parse_model("n=y@http://a.invalid/v1")
ANSWER = Completion(text="ok", input_tokens=1, output_tokens=1)


def request(run: int = 0, model: Model = M) -> Request:
    return Request(model=model, frame="", skill="", user="Why?", max_tokens=8, run=run)


def later(retry_after: float | None = None) -> ProviderError:
    return ProviderError("m: HTTP 500 later", status=500, retryable=True, retry_after=retry_after)


@dataclass
class Clock:
    """Time that passes only where somebody sleeps."""

    now: float = 0.0
    slept: list[float] = field(default_factory=list)

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds
        await asyncio.sleep(0)


@dataclass
class Host:
    """Answers each request with the next of ``script``, after that with ``rest``."""

    script: list[ProviderError] = field(default_factory=list)
    rest: Callable[[], Completion] = lambda: ANSWER
    requests: list[Request] = field(default_factory=list)
    open: int = 0
    peak: int = 0

    async def complete(self, request: Request) -> Completion:
        self.requests.append(request)
        self.open += 1
        self.peak = max(self.peak, self.open)
        await asyncio.sleep(0)
        self.open -= 1
        if self.script:
            raise self.script.pop(0)
        return self.rest()

    async def aclose(self) -> None:
        pass


def always(make: Callable[[], ProviderError]) -> Callable[[], Completion]:
    """Answer with an error of its own each time."""

    def fail() -> Completion:
        raise make()

    return fail


def pace_of(maximum: int, clock: Clock) -> Pace:
    """Return a pace that goes by ``clock``."""
    pace = Pace(maximum)
    pace.clock = clock
    return pace


def client_of(
    host: Client,
    clock: Clock,
    *,
    pace: Pace | None = None,
    activity: InFlight | None = None,
) -> HostClient:
    """Make a client that sleeps on ``clock``."""
    retries = Retries(
        pace=pace or pace_of(4, clock),
        host="a.invalid",
        activity=activity or InFlight(clock=clock),
        sleep=clock.sleep,
    )
    return HostClient(host, retries, Budget(None, Prices({})))


def outcomes(*asking: Coroutine[object, object, Completion]) -> list[Completion | BaseException]:
    """Send all requests at once; return the outcome of each."""

    async def gather() -> list[Completion | BaseException]:
        return await asyncio.gather(*asking, return_exceptions=True)

    return asyncio.run(gather())


def outcome(asking: Coroutine[object, object, Completion]) -> Completion | BaseException:
    return outcomes(asking)[0]
