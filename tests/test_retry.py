from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field

import pytest

from pytest_upskill.activity import ASKING, Activity, Pause
from pytest_upskill.completion import Completion, ProviderError, Request
from pytest_upskill.models import Model, parse_model
from pytest_upskill.providers import make_client
from pytest_upskill.providers.keys import endpoints
from pytest_upskill.retry import Patience, RetryingClient, Slots
from tests.asking import model_at, request_to
from tests.loopback import Loopback, Reply

M = parse_model("m=x@http://a.invalid/v1")
N = parse_model("n=y@http://a.invalid/v1")
ANSWER = Completion(text="ok", input_tokens=1, output_tokens=1)


def request(run: int = 0, model: Model = M) -> Request:
    return Request(model=model, frame="", skill="", user="Why?", max_tokens=8, run=run)


def later(retry_after: float | None = None) -> ProviderError:
    return ProviderError("m: HTTP 503 later", status=503, retryable=True, retry_after=retry_after)


def too_many() -> ProviderError:
    return ProviderError("m: HTTP 429 slow down", status=429)


def silence() -> ProviderError:
    return ProviderError("m: no connection", retryable=True)


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
    asked: list[Request] = field(default_factory=list)
    open: int = 0
    peak: int = 0

    async def complete(self, request: Request) -> Completion:
        self.asked.append(request)
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
    def fail() -> Completion:
        raise make()

    return fail


def client_of(
    host: Host,
    clock: Clock,
    *,
    slots: Slots | None = None,
    patience: Patience | None = None,
    activity: Activity | None = None,
) -> RetryingClient:
    return RetryingClient(
        host,
        slots=slots or Slots(4, clock=clock),
        host="a.invalid",
        activity=activity or Activity(clock=clock),
        patience=patience or Patience(deadline=100),
        sleep=clock.sleep,
        clock=clock,
    )


def outcomes(*asking: Coroutine[object, object, Completion]) -> list[Completion | BaseException]:
    async def gather() -> list[Completion | BaseException]:
        return await asyncio.gather(*asking, return_exceptions=True)

    return asyncio.run(gather())


def outcome(asking: Coroutine[object, object, Completion]) -> Completion | BaseException:
    return outcomes(asking)[0]


def test_what_may_pass_is_asked_again_and_every_attempt_counted() -> None:
    host, clock = Host(script=[later(), later()]), Clock()

    (answer,) = outcomes(client_of(host, clock).complete(request()))

    assert isinstance(answer, Completion)
    assert answer.attempts == 3
    assert len(host.asked) == 3


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (ProviderError("m: slow down", status=429, retryable=True, retry_after=7.0), "rate limit"),
        (ProviderError("m: busy", status=529, retryable=True, retry_after=7.0), "overloaded"),
        (later(retry_after=7.0), "HTTP 503"),
        (ProviderError("m: no reply", retryable=True, retry_after=7.0), "no reply"),
    ],
)
def test_a_pause_is_told_with_its_reason(error: ProviderError, why: str) -> None:
    clock = Clock()
    activity = Activity(clock=clock)
    told: list[tuple[list[Pause], list[float]]] = []

    async def sleep(seconds: float) -> None:
        told.append((activity.pauses(), activity.ages(ASKING)))
        await clock.sleep(seconds)

    client = RetryingClient(
        Host(script=[error]),
        slots=Slots(1),
        host="a.invalid",
        activity=activity,
        sleep=sleep,
        clock=clock,
    )
    outcome(client.complete(request()))

    assert told == [([Pause(host="a.invalid", why=why, seconds=7.0)], [])]


def test_a_request_is_in_flight_while_its_host_has_it() -> None:
    activity, seen = Activity(), list[int]()

    def answer() -> Completion:
        seen.append(len(activity.ages(ASKING)))
        return ANSWER

    outcome(client_of(Host(rest=answer), Clock(), activity=activity).complete(request()))

    assert (seen, activity.ages(ASKING)) == ([1], [])


def test_what_will_not_pass_is_not_asked_again() -> None:
    host, clock = Host(script=[ProviderError("m: HTTP 400 no", status=400)]), Clock()

    error = outcome(client_of(host, clock).complete(request()))

    assert str(error) == "m: HTTP 400 no"
    assert (len(host.asked), clock.slept) == (1, [])


def test_pauses_double_with_jitter_up_to_the_longest() -> None:
    host, clock = Host(script=[later() for _ in range(6)]), Clock()
    patience = Patience(first_backoff=1, longest_backoff=8)

    outcome(client_of(host, clock, patience=patience).complete(request()))

    bounds = [(1, 2), (2, 3), (4, 5), (8, 8), (8, 8), (8, 8)]
    assert all(low <= s <= high for s, (low, high) in zip(clock.slept, bounds, strict=True))
    assert len(set(clock.slept[:3])) == 3


@pytest.mark.parametrize(("asked", "slept"), [(7, 7), (3600, 60)])
def test_the_servers_pause_is_kept_up_to_a_cap(asked: float, slept: float) -> None:
    host, clock = Host(script=[later(retry_after=asked)]), Clock()

    outcome(client_of(host, clock).complete(request()))

    assert clock.slept == [slept]


def test_no_attempt_starts_after_the_deadline() -> None:
    host, clock = Host(rest=always(lambda: later(retry_after=40))), Clock()

    error = outcome(client_of(host, clock).complete(request()))

    assert str(error) == "m: HTTP 503 later (after 3 attempts in 80 s)"
    assert len(host.asked) == 3


def test_replies_that_are_broken_again_and_again_are_not_asked_for_until_the_deadline() -> None:
    def broken() -> ProviderError:
        return ProviderError("m: broken JSON", status=200, retryable=True)

    host = Host(rest=always(broken))

    error = outcome(client_of(host, Clock()).complete(request()))

    assert str(error).startswith("m: broken JSON (after 5 attempts in ")
    assert len(host.asked) == Patience().attempts_at_broken


def test_a_completion_given_up_on_does_not_stop_the_model() -> None:
    host, clock = Host(rest=always(lambda: later(retry_after=60))), Clock()
    client = client_of(host, clock)

    first = outcome(client.complete(request()))
    host.rest = lambda: ANSWER
    second = outcome(client.complete(request()))

    assert isinstance(first, ProviderError)
    assert not first.fatal
    assert isinstance(second, Completion)


def test_a_slot_is_free_while_its_request_waits_to_be_sent_again() -> None:
    host, clock = Host(script=[later()]), Clock()
    client = client_of(host, clock, slots=Slots(1))

    outcomes(client.complete(request(run=0)), client.complete(request(run=1)))

    assert [asked.run for asked in host.asked] == [0, 1, 0]


@pytest.mark.parametrize("provider", ["anthropic", "openai"])
def test_an_sdks_client_recovers_without_a_retry_of_the_sdks_own(
    loopback: Loopback, provider: str
) -> None:
    loopback.replies.extend([Reply(status=429), Reply(status=500), Reply(text="at last")])
    model, clock = model_at(loopback, provider), Clock()
    (endpoint,) = endpoints([model], {}).values()
    client = RetryingClient(
        make_client(endpoint, timeout=10, concurrency=1),
        slots=Slots(1),
        host=endpoint.host,
        activity=Activity(),
        sleep=clock.sleep,
    )

    async def ask_and_close() -> Completion:
        answer = await client.complete(request_to(model))
        await client.aclose()
        return answer

    answer = asyncio.run(ask_and_close())

    assert (answer.text, answer.attempts, len(loopback.requests)) == ("at last", 3, 3)


def test_no_more_requests_than_slots_are_in_flight() -> None:
    host, clock = Host(), Clock()
    client = client_of(host, clock, slots=Slots(3))

    outcomes(*(client.complete(request(run)) for run in range(20)))

    assert (len(host.asked), host.peak) == (20, 3)


def test_a_fatal_error_stops_its_model_with_the_same_words_unsent() -> None:
    refused = ProviderError("m: HTTP 401 bad key", status=401, fatal=True)
    host, clock = Host(script=[refused]), Clock()
    client = client_of(host, clock, slots=Slots(1))

    errors = outcomes(*(client.complete(request(run)) for run in range(50)))

    assert {str(error) for error in errors} == {"m: HTTP 401 bad key"}
    assert all(isinstance(error, ProviderError) and error.fatal for error in errors)
    assert len(host.asked) == 1


def test_a_stopped_model_leaves_the_others_of_its_host_alone() -> None:
    unknown = ProviderError("m: HTTP 404 no model", status=404, fatal=True)
    host, clock = Host(script=[unknown]), Clock()
    client = client_of(host, clock)

    outcome(client.complete(request(model=M)))

    assert isinstance(outcome(client.complete(request(model=N))), Completion)


def test_a_host_that_never_answered_is_given_up_on_soon_and_for_good() -> None:
    host, clock = Host(rest=always(silence)), Clock()
    client = client_of(host, clock)

    first = outcome(client.complete(request()))
    second = outcome(client.complete(request()))

    assert str(first).startswith("m: no connection (after 3 attempts in ")
    assert str(second) == str(first)
    assert len(host.asked) == 3


def test_a_host_that_answered_once_is_waited_for_until_the_deadline() -> None:
    host, clock = Host(), Clock()
    client = client_of(host, clock)
    outcome(client.complete(request()))
    host.rest = always(silence)

    clock.now += 1
    error = outcome(client.complete(request()))

    assert len(host.asked) > 4
    assert isinstance(error, ProviderError)
    assert error.fatal


def test_cancelling_gives_the_slot_back() -> None:
    host, clock = Host(), Clock()
    client = client_of(host, clock, slots=Slots(1))

    async def cancel_one_and_ask() -> Completion:
        task = asyncio.ensure_future(client.complete(request()))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return await client.complete(request())

    assert asyncio.run(cancel_one_and_ask()).text == "ok"


def test_requests_refused_together_cut_the_slots_once() -> None:
    host, clock = Host(script=[too_many() for _ in range(10)]), Clock()
    slots = Slots(10, clock=clock)
    client = client_of(host, clock, slots=slots)
    outcomes(*(client.complete(request(run)) for run in range(10)))
    cut, before, host.peak = slots.limit, host.peak, 0

    outcomes(*(client.complete(request(run)) for run in range(10)))

    assert (before, cut, host.peak) == (10, 8, 8)


def test_refusals_that_go_on_cut_down_to_one() -> None:
    clock = Clock()
    slots = Slots(10, clock=clock)

    for _ in range(30):
        slots.refused()
        clock.now += 15

    assert slots.limit == 1


def test_clean_rounds_grow_the_slots_back_and_not_beyond() -> None:
    clock = Clock()
    slots = Slots(10, clock=clock)
    slots.refused()

    grown = []
    for _ in range(40):
        slots.answered()
        grown.append(slots.limit)

    assert grown[:7] == [8] * 7
    assert grown[7:16] == [9] * 9
    assert set(grown[16:]) == {10}


def test_trouble_between_answers_holds_the_growth_back() -> None:
    clock = Clock()
    slots = Slots(10, clock=clock)
    slots.refused()

    for _ in range(50):
        slots.answered()
        slots.answered()
        slots.failed()

    assert slots.limit == 8
