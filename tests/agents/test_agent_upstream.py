"""Requests that the proxy of an agent sends to the host: retries, headers and failures."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping

import httpx2
import pytest

from pytest_upskill.agents.upstream import Upstream
from pytest_upskill.answers.progress import InFlight
from pytest_upskill.answers.retry import Pace, Retries
from pytest_upskill.models import ProviderError, Request, parse_model
from pytest_upskill.models.keys import Endpoint
from pytest_upskill.project.redaction import Redactor
from tests.loopback import Loopback, Reply

KEY = "sk-ant-planted-0123456789"
BODY = {"model": "small", "messages": [{"role": "user", "content": "Why?"}], "system": []}


def send(
    loopback: Loopback,
    *,
    timeout: float = 5.0,
    given: Mapping[str, str] | None = None,
    times: int = 1,
    base: str = "",
) -> str:
    """Send a request as the proxy does, or several at once; return the text of the first reply."""
    model = parse_model(f"claude-small@{loopback.url}")
    asked = Request(model=model, frame="", skill="", user="Why?", max_tokens=8, run=0)
    endpoint = Endpoint(
        wire="anthropic",
        url=loopback.url + base,
        key_variable="ANTHROPIC_API_KEY",
        key=KEY,
        redactor=Redactor([KEY]),
    )

    async def receive(reply: httpx2.Response) -> bytes:
        return await reply.aread()

    async def all_at_once() -> str:
        upstream = Upstream(
            endpoint,
            "messages",
            timeout=timeout,
            retries=Retries(
                pace=Pace(times),
                host=endpoint.host,
                activity=InFlight(),
                sleep=lambda _: asyncio.sleep(0.01),
            ),
        )
        content = json.dumps(BODY).encode()
        try:
            sent = asked, "messages", content, given or {}, receive
            one = (upstream.exchange(*sent) for _ in range(times))
            return (await asyncio.gather(*one))[0].text
        finally:
            await upstream.aclose()

    return asyncio.run(all_at_once())


def test_requests_that_are_in_flight_together_are_answered_one_by_one(loopback: Loopback) -> None:
    loopback.replies.extend([Reply(text="37", delay=0.05), Reply(text="37", delay=0.2)])

    assert send(loopback, times=2) == "37"


@pytest.mark.parametrize("base", ["", "/v1"])
def test_a_base_url_may_end_in_v1(loopback: Loopback, base: str) -> None:
    loopback.replies.append(Reply(text="37"))

    send(loopback, base=base)

    assert [each.path for each in loopback.requests] == ["/v1/messages"]


@pytest.mark.parametrize("status", [429, 500, 529])
def test_a_refusal_that_may_pass_is_retried(loopback: Loopback, status: int) -> None:
    loopback.replies.extend([Reply(status=status), Reply(text="37")])

    assert send(loopback) == "37"
    assert len(loopback.requests) == 2


def test_a_refusal_that_no_retry_can_fix_is_an_error_without_the_key(loopback: Loopback) -> None:
    loopback.replies.append(Reply(status=401, body={"error": {"message": f"bad key {KEY}"}}))

    with pytest.raises(ProviderError, match=r"HTTP 401 bad key \*\*\*") as caught:
        send(loopback)

    assert len(loopback.requests) == 1
    assert KEY not in str(caught.value)


@pytest.mark.parametrize("silence", [Reply(delay=2), Reply(drop=True)], ids=["slow", "dropped"])
def test_a_request_that_may_be_billed_is_not_sent_again(loopback: Loopback, silence: Reply) -> None:
    loopback.replies.append(silence)

    with pytest.raises(ProviderError, match="no complete reply from 127") as caught:
        send(loopback, timeout=0.3)

    assert caught.value.billable
    assert len(loopback.requests) == 1


@pytest.mark.parametrize("refusal", [httpx2.ProxyError("407"), httpx2.PoolTimeout("full")])
def test_a_request_that_no_host_received_is_not_billed(
    loopback: Loopback, monkeypatch: pytest.MonkeyPatch, refusal: httpx2.TransportError
) -> None:
    async def refuse(*_: object, **__: object) -> httpx2.Response:
        raise refusal

    monkeypatch.setattr(httpx2.AsyncClient, "send", refuse)

    with pytest.raises(ProviderError, match=r"no connection to 127") as caught:
        send(loopback)

    assert not caught.value.billable


def test_the_key_is_added_and_nothing_of_the_agents_own_headers(loopback: Loopback) -> None:
    send(
        loopback,
        given={"anthropic-version": "2023-06-01", "x-api-key": "fake", "cookie": "a=b",
               "anthropic-beta": "of-an-agent-only"},
    )  # fmt: skip

    headers = loopback.requests[0].headers
    assert headers["x-api-key"] == KEY
    assert headers["anthropic-version"] == "2023-06-01"
    assert "cookie" not in headers
    assert "of-an-agent-only" not in headers.get("anthropic-beta", "")
