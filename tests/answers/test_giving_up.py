"""When a request, a model or a host is given up on."""

from __future__ import annotations

import pytest

from pytest_upskill.models import Completion, ProviderError
from tests.answers.retrying import (
    ANSWER,
    Clock,
    Host,
    M,
    N,
    always,
    client_of,
    later,
    outcome,
    outcomes,
    pace_of,
    request,
)


def silence() -> ProviderError:
    return ProviderError("m: no connection", retryable=True)


def test_no_attempt_starts_after_the_deadline() -> None:
    host, clock = Host(rest=always(lambda: later(retry_after=40))), Clock()

    error = outcome(client_of(host, clock).complete(request()))

    assert str(error) == "m: HTTP 500 later (after 8 attempts in 280 s)"
    assert len(host.requests) == 8


def test_a_host_that_is_down_is_one_message_for_all_requests() -> None:
    host, clock = Host(rest=always(later)), Clock()
    client = client_of(host, clock)

    errors = outcomes(*(client.complete(request(run)) for run in range(40)))

    assert len({str(error) for error in errors}) == 1


def test_a_host_that_answers_others_is_waited_for_though_it_has_503_for_one() -> None:
    host, clock = Host(), Clock()
    client = client_of(host, clock, pace=pace_of(1, clock))

    def refuse_the_first() -> Completion:
        if host.requests[-1].run == 0:
            raise later()
        clock.now += 1
        return ANSWER

    host.rest = refuse_the_first
    outcomes(*(client.complete(request(run)) for run in range(3)))

    assert clock.now > 290


def test_a_wait_in_a_long_line_is_not_counted_against_a_completion() -> None:
    host, clock = Host(), Clock()
    client = client_of(host, clock, pace=pace_of(1, clock))
    outcome(client.complete(request()))

    def refuse_each_once() -> Completion:
        clock.now += 30
        if len(host.requests) <= 21:
            raise later()
        return ANSWER

    host.rest = refuse_each_once
    answers = outcomes(*(client.complete(request(run)) for run in range(20)))

    assert [getattr(answer, "attempts", answer) for answer in answers] == [2] * 20


@pytest.mark.parametrize("answers", [0, 1])
@pytest.mark.parametrize("status", [200, 503])
def test_replies_that_may_be_billed_are_not_asked_for_again_and_again_until_the_deadline(
    status: int, answers: int
) -> None:
    def broken() -> ProviderError:
        # A host may say 503 in a reply with status 200.
        return ProviderError("m: broken", status=status, retryable=True, billable=True)

    host = Host()
    client = client_of(host, Clock())
    for _ in range(answers):
        outcome(client.complete(request()))
    host.rest = always(broken)

    error = outcome(client.complete(request()))

    assert str(error).startswith("m: broken (after 6 attempts in ")
    assert len(host.requests) == answers + 6


def test_a_completion_given_up_on_does_not_stop_the_model() -> None:
    host, clock = Host(), Clock()
    client = client_of(host, clock, pace=pace_of(1, clock))

    def refuse_the_first() -> Completion:
        if host.requests[-1].run == 0:
            raise later(retry_after=60)
        return ANSWER

    host.rest = refuse_the_first
    first, second = outcomes(client.complete(request(0)), client.complete(request(1)))
    third = outcome(client.complete(request(2)))

    assert isinstance(first, ProviderError)
    assert not first.fatal
    assert isinstance(second, Completion)
    assert isinstance(third, Completion)


def test_a_host_that_answers_no_request_until_a_deadline_is_given_up_on() -> None:
    host, clock = Host(rest=always(lambda: later(retry_after=60))), Clock()
    client = client_of(host, clock)

    first = outcome(client.complete(request(0)))
    sent = len(host.requests)
    second = outcome(client.complete(request(1)))

    assert isinstance(first, ProviderError)
    assert (first.fatal, str(second)) == (True, str(first))
    assert len(host.requests) == sent


def test_after_a_fatal_error_later_requests_fail_unsent_with_the_same_words() -> None:
    refused = ProviderError("m: HTTP 401 bad key", status=401, fatal=True)
    host, clock = Host(script=[refused]), Clock()
    client = client_of(host, clock, pace=pace_of(1, clock))

    errors = outcomes(*(client.complete(request(run)) for run in range(50)))

    assert {str(error) for error in errors} == {"m: HTTP 401 bad key"}
    assert all(isinstance(error, ProviderError) and error.fatal for error in errors)
    assert not any(isinstance(error, ProviderError) and error.billable for error in errors)
    assert len(host.requests) == 1


def test_a_stopped_model_leaves_the_others_of_its_host_alone() -> None:
    unknown = ProviderError("m: HTTP 404 no model", status=404, fatal=True)
    host, clock = Host(script=[unknown]), Clock()
    client = client_of(host, clock)

    outcome(client.complete(request(model=M)))

    assert isinstance(outcome(client.complete(request(model=N))), Completion)


def test_a_host_that_never_answered_is_given_up_on_soon_and_for_all_its_models() -> None:
    host, clock = Host(rest=always(silence)), Clock()
    client = client_of(host, clock)

    first, *later = (outcome(client.complete(request(model=model))) for model in (M, M, N))

    assert str(first).startswith("m: no connection (after 3 attempts in ")
    assert [str(each) for each in later] == [str(first)] * 2
    assert len(host.requests) == 3


def test_a_host_that_does_not_reply_is_given_up_on_for_all_requests() -> None:
    host, clock = Host(rest=always(silence)), Clock()
    client = client_of(host, clock)

    errors = outcomes(*(client.complete(request(run)) for run in range(40)))

    assert len({str(error) for error in errors}) == 1
    assert str(errors[0]).startswith("m: no connection (after 3 attempts in ")
    assert len(host.requests) < 3 * 40


def test_a_host_that_starts_late_gets_all_requests_once_it_answers() -> None:
    host, clock = Host(script=[silence() for _ in range(5)]), Clock()
    client = client_of(host, clock)

    answers = outcomes(*(client.complete(request(run)) for run in range(40)))

    assert all(isinstance(answer, Completion) for answer in answers)
    assert (len(host.requests), host.peak) == (45, 4)


def test_a_host_that_answered_once_is_waited_for_until_the_deadline() -> None:
    host, clock = Host(), Clock()
    client = client_of(host, clock)
    outcome(client.complete(request()))
    host.rest = always(silence)

    clock.now += 1
    error = outcome(client.complete(request()))

    assert len(host.requests) > 4
    assert isinstance(error, ProviderError)
    assert error.fatal
