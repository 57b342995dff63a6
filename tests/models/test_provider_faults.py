"""HTTP errors and lost connections: what the message says, and whether to ask again."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from email.utils import formatdate
from time import time

import pytest

from pytest_upskill.models import ProviderError, parse_model
from tests.loopback import Loopback, Reply
from tests.sdk_requests import ask, every_sdk, fault, model_at, request_to


@every_sdk
@pytest.mark.parametrize(
    ("status", "cure"),
    [
        (401, "no key was sent: set UPSKILL_API_KEY"),
        (402, "check the billing of the account that owns UPSKILL_API_KEY"),
        (403, "no key was sent: set UPSKILL_API_KEY"),
    ],
)
def test_a_refused_key_stops_the_model_and_names_the_variable(
    loopback: Loopback, provider: str, status: int, cure: str
) -> None:
    error = fault(loopback, provider, Reply(status=status, text="no"))

    assert str(error) == f"m: HTTP {status} no: {cure}"
    assert (error.status, error.fatal, error.retryable) == (status, True, False)


@pytest.mark.parametrize(
    ("status", "spec", "doubt"),
    [
        (404, "m=x@{url}", "no model 'x' at {url}, or the base URL lacks /v1"),
        (404, "m=x@{url}/v1", "no model 'x' at {url}/v1"),
        (404, "m=anthropic:x@{url}", "no model 'x' at {url}"),
        (405, "m=x@{url}/v1", "{url}/v1 serves no models"),
        (410, "m=anthropic:x@{url}", "{url} serves no models"),
        (501, "m=x@{url}", "{url} serves no models, or the base URL lacks /v1"),
    ],
)
def test_where_nothing_is_served_the_message_doubts_the_base_url(
    loopback: Loopback, status: int, spec: str, doubt: str
) -> None:
    loopback.replies.append(Reply(status=status, text="no"))

    with pytest.raises(ProviderError) as caught:
        ask(request_to(parse_model(spec.format(url=loopback.url))))

    assert str(caught.value) == f"m: HTTP {status} no: {doubt.format(url=loopback.url)}"
    assert (caught.value.fatal, caught.value.retryable) == (True, False)


@every_sdk
def test_a_server_that_says_that_it_has_no_such_model_is_not_repeated(
    loopback: Loopback, provider: str
) -> None:
    error = fault(loopback, provider, Reply(status=404, text="model some-model not found"))

    url = loopback.url if provider == "anthropic" else loopback.openai_url
    said = f"m: HTTP 404 model some-model not found: check its name, or the URL {url}"
    assert str(error) == said


@every_sdk
@pytest.mark.parametrize("status", [408, 409, 429, 500, 503, 529])
def test_a_passing_status_may_be_asked_again(
    loopback: Loopback, provider: str, status: int
) -> None:
    error = fault(loopback, provider, Reply(status=status, text="later"))

    assert str(error).startswith(f"m: HTTP {status} later")
    assert (error.status, error.fatal, error.retryable) == (status, False, True)
    assert len(loopback.requests) == 1


@every_sdk
def test_a_bad_request_is_not_sent_again_and_stops_no_model(
    loopback: Loopback, provider: str
) -> None:
    error = fault(loopback, provider, Reply(status=400, text="prompt too long"))

    assert str(error) == "m: HTTP 400 prompt too long"
    assert (error.fatal, error.retryable) == (False, False)


@every_sdk
@pytest.mark.parametrize(
    ("status", "header", "retryable"), [(400, "true", True), (500, "false", False)]
)
def test_the_server_decides_whether_to_ask_again(
    loopback: Loopback, provider: str, status: int, header: str, retryable: bool
) -> None:
    error = fault(loopback, provider, Reply(status=status, headers={"x-should-retry": header}))

    assert error.retryable is retryable


@every_sdk
@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after-ms": "250", "retry-after": "7"}, 0.25),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "soon"}, None),
        ({}, None),
    ],
)
def test_retry_after_is_read(
    loopback: Loopback, provider: str, headers: dict[str, str], seconds: float | None
) -> None:
    error = fault(loopback, provider, Reply(status=429, headers=headers))

    assert error.retry_after == seconds


@every_sdk
def test_retry_after_may_be_a_date(loopback: Loopback, provider: str) -> None:
    headers = {"retry-after": formatdate(time() + 3600, usegmt=True)}

    error = fault(loopback, provider, Reply(status=429, headers=headers))

    assert error.retry_after == pytest.approx(3600, abs=60)


@every_sdk
def test_an_exhausted_quota_is_not_worth_waiting_for(loopback: Loopback, provider: str) -> None:
    body = {"error": {"message": "You exceeded your quota", "code": "insufficient_quota"}}

    error = fault(loopback, provider, Reply(status=429, body=body))

    assert (error.fatal, error.retryable) == (True, False)


@every_sdk
def test_a_host_that_is_not_there_is_named(provider: str) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        host = f"127.0.0.1:{free.getsockname()[1]}"
    model = parse_model(f"m={provider}:some-model@http://{host}")

    with pytest.raises(ProviderError) as caught:
        ask(request_to(model))

    assert str(caught.value).startswith(f"no connection to {host} (")
    assert "(HTTPS_PROXY, HTTP_PROXY and NO_PROXY apply)" in str(caught.value)
    assert (caught.value.status, caught.value.retryable) == (None, True)
    assert not caught.value.billable


@every_sdk
def test_a_fault_is_one_printable_line_of_bounded_length(loopback: Loopback, provider: str) -> None:
    error = fault(loopback, provider, Reply(status=400, text="\x1b[31mred\nline\x00" + "x" * 5000))

    assert str(error).isprintable()
    assert len(str(error)) < 300


@every_sdk
def test_cancelling_a_request_is_no_fault(loopback: Loopback, provider: str) -> None:
    loopback.replies.append(Reply(delay=30))

    with pytest.raises(asyncio.CancelledError):
        ask(request_to(model_at(loopback, provider)), cancel_after=0.2)


@pytest.mark.parametrize(
    ("body", "cured"),
    [
        ({"error": {"message": "Rate limit reached: requests per day (RPD): Limit 200"}}, True),
        (
            [
                {
                    "error": {
                        "message": "You exceeded your current quota",
                        "details": [{"violations": [{"quotaId": "RequestsPerDayPerModel"}]}],
                    }
                }
            ],
            True,
        ),
        ({"error": {"message": "Rate limit reached: requests per minute"}}, False),
    ],
)
def test_a_daily_limit_is_not_waited_for(loopback: Loopback, body: object, *, cured: bool) -> None:
    error = fault(loopback, "openai", Reply(status=429, body=json.dumps(body)))

    assert ("the limit of the day is used up: run again" in str(error)) is cured
    assert (error.fatal, error.retryable) == (cured, not cured)


def test_the_delay_that_gemini_asks_for_is_kept(loopback: Loopback) -> None:
    details = [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.5s"}]
    body = [{"error": {"code": 429, "message": "Quota exceeded", "details": details}}]

    error = fault(loopback, "openai", Reply(status=429, body=json.dumps(body)))

    assert (error.retry_after, error.retryable) == (34.5, True)
    assert str(error) == (
        "m: HTTP 429 Quota exceeded: run again later, which requests only the rest, or lower "
        "--upskill-concurrency"
    )


def test_the_page_of_a_corporate_proxy_is_no_matter_of_the_key(loopback: Loopback) -> None:
    page = "<!doctype html><html><title>Blocked by policy</title></html>"

    error = fault(loopback, "openai", Reply(status=403, body=page, content_type="text/html"))

    assert "HTTP 403 a web page (Blocked by policy): a proxy or firewall refuses 127." in str(error)
    assert "check UPSKILL_API_KEY" not in str(error)


@every_sdk
def test_a_proxy_that_wants_a_password_is_named(
    loopback: Loopback, provider: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", loopback.url)
    loopback.replies.append(Reply(status=407, text="no"))
    model = parse_model(f"m={provider}:x@http://models.invalid/v1")

    with pytest.raises(ProviderError) as caught:
        ask(request_to(model))

    assert "HTTP 407 no: a proxy or firewall refuses models.invalid: check the user and" in str(
        caught.value
    )
    assert (caught.value.fatal, caught.value.retryable) == (True, False)


@every_sdk
def test_a_proxy_that_refuses_a_tunnel_is_named(
    provider: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as proxy:

        def refuse() -> None:
            connection, _ = proxy.accept()
            with connection:
                connection.recv(1 << 16)
                connection.sendall(b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n")

        threading.Thread(target=refuse, daemon=True).start()
        monkeypatch.setenv("https_proxy", f"http://127.0.0.1:{proxy.getsockname()[1]}")
        with pytest.raises(ProviderError) as caught:
            ask(request_to(parse_model(f"m={provider}:x@https://models.invalid/v1")))

    assert "refuses models.invalid: check the user and password in HTTPS_PROXY" in str(caught.value)
    assert (caught.value.fatal, caught.value.billable) == (True, False)


@every_sdk
def test_a_reply_that_breaks_off_is_told_apart_from_what_is_no_http(provider: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def break_off() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(1 << 16)
                connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 999\r\n\r\n{")
                # Whoever closes before the whole request is read resets the connection.
                connection.shutdown(socket.SHUT_WR)
                while connection.recv(1 << 16):
                    pass

        threading.Thread(target=break_off, daemon=True).start()
        url = f"http://127.0.0.1:{server.getsockname()[1]}/v1"
        with pytest.raises(ProviderError) as caught:
            ask(request_to(parse_model(f"m={provider}:x@{url}")))

    assert str(caught.value).startswith("the reply of 127.0.0.1:")
    assert str(caught.value).endswith("look into the server's log, or raise the proxy's timeout")
    assert (caught.value.retryable, caught.value.billable) == (True, True)
