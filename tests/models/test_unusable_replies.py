"""Replies with HTTP 200 that hold no answer, and replies that are no HTTP."""

from __future__ import annotations

import gzip
import json
import socket
import threading

import pytest

from pytest_upskill.models import ProviderError, parse_model
from pytest_upskill.models.streams import MAX_REPLY
from tests.loopback import Loopback, Reply
from tests.sdk_requests import ask, every_sdk, fault, model_at, request_to


@every_sdk
@pytest.mark.parametrize("status", [200, 500])
def test_a_reply_is_not_read_beyond_what_an_answer_can_have(
    loopback: Loopback, provider: str, status: int
) -> None:
    bomb = gzip.compress(b" " * (MAX_REPLY + 1))
    reply = Reply(status=status, body=bomb, headers={"content-encoding": "gzip"})

    error = fault(loopback, provider, reply)

    assert str(error).endswith(" sent more than 16 MiB")
    assert (error.status, error.retryable, error.billable) == (200, False, True)


@every_sdk
def test_a_compressed_reply_is_read(loopback: Loopback, provider: str) -> None:
    message = {"content": "37"}
    choices = [{"finish_reason": "stop", "message": message}]
    body = {"choices": choices, "content": [{"type": "text", "text": "37"}]}
    packed = gzip.compress(json.dumps(body).encode())
    loopback.replies.append(Reply(body=packed, headers={"content-encoding": "gzip"}))

    assert ask(request_to(model_at(loopback, provider))).text == "37"


@every_sdk
def test_truncated_json_is_a_fault(loopback: Loopback, provider: str) -> None:
    error = fault(loopback, provider, Reply(body='{"id": "1", "content": [{"ty'))

    assert " sent invalid JSON (" in str(error)
    assert (error.status, error.retryable) == (200, True)


@every_sdk
@pytest.mark.parametrize("content_type", ["text/html", "application/json"])
def test_a_web_page_is_a_fault(loopback: Loopback, provider: str, content_type: str) -> None:
    page = "<!doctype html>\n<title>Sign in</title>"

    error = fault(loopback, provider, Reply(body=page, content_type=content_type))

    assert str(error).isprintable()
    assert error.status == 200
    if content_type == "text/html":
        assert " sent a web page (Sign in) instead of an API reply: is the base " in str(error)


@every_sdk
@pytest.mark.parametrize(
    "body",
    [{}, {"choices": None, "content": None}, {"choices": [], "content": 1}, "[]", "null", '"a"'],
)
def test_a_reply_without_an_answer_is_a_fault(
    loopback: Loopback, provider: str, body: str | dict[str, object]
) -> None:
    error = fault(loopback, provider, Reply(body=body))

    host = loopback.url.removeprefix("http://")
    assert str(error).startswith(f"m: {host} sent ")
    assert str(error).endswith(" instead of an API reply: is the base URL right?")


@every_sdk
def test_an_error_with_status_200_is_a_fault_in_the_servers_words(
    loopback: Loopback, provider: str
) -> None:
    error = fault(loopback, provider, Reply(body={"error": {"message": "upstream is gone"}}))

    assert str(error).endswith(" sent an error with HTTP 200: upstream is gone")


@every_sdk
@pytest.mark.parametrize("code", [429, "429"], ids=repr)
def test_an_error_with_status_200_counts_as_the_status_it_names(
    loopback: Loopback, provider: str, code: object
) -> None:
    body = {"error": {"message": "slow down", "code": code}}

    error = fault(loopback, provider, Reply(body=body))

    assert (error.status, error.retryable) == (429, True)
    assert str(error).startswith("m: HTTP 429 slow down")


@pytest.mark.parametrize("code", [True, 7, "rate_limit", None])
def test_a_code_that_is_no_status_is_not_taken_for_one(loopback: Loopback, code: object) -> None:
    body = {"error": {"message": "upstream is gone", "code": code}}

    error = fault(loopback, "openai", Reply(body=body))

    assert (error.status, error.retryable) == (200, False)


def test_an_error_beside_the_beginning_of_an_answer_is_a_fault(loopback: Loopback) -> None:
    error_of_choice = {"code": 502, "message": "the model broke off"}
    choice = {"finish_reason": "error", "error": error_of_choice, "message": {"content": "The fa"}}

    error = fault(loopback, "openai", Reply(body={"choices": [choice]}))

    assert str(error).startswith("m: HTTP 502 the model broke off: run again later, ")
    assert (error.retryable, error.billable) == (True, True)


@every_sdk
@pytest.mark.parametrize(
    ("reply", "billable"),
    [
        (Reply(body="{"), True),
        (Reply(body={}), True),
        (Reply(body={"error": {"message": "the model broke off", "code": 502}}), True),
        (Reply(drop=True), True),
        (Reply(status=429), False),
        (Reply(status=500), False),
    ],
)
def test_only_an_http_error_is_known_not_to_be_billed(
    loopback: Loopback, provider: str, reply: Reply, *, billable: bool
) -> None:
    error = fault(loopback, provider, reply)

    assert error.billable is billable


@every_sdk
@pytest.mark.parametrize(
    ("scheme", "doubt"),
    [
        ("http", "is it running and reachable, and is http"),
        ("https", "check its certificate, set SSL_CERT_FILE .* or write http:// if it has no TLS"),
    ],
)
def test_a_server_with_another_protocol_is_told_apart_from_one_that_is_not_running(
    provider: str, scheme: str, doubt: str
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def greet() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(1 << 16)
                connection.sendall(b"\x15\x03\x01\x00\x02\x02\x46")  # TLS: unexpected message

        threading.Thread(target=greet, daemon=True).start()
        url = f"{scheme}://127.0.0.1:{server.getsockname()[1]}/v1"
        with pytest.raises(ProviderError, match=doubt):
            ask(request_to(parse_model(f"m={provider}:x@{url}")))
