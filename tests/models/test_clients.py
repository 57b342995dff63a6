"""What a completion says whichever SDK it came through."""

from __future__ import annotations

from typing import Any

import pytest

from tests.loopback import Loopback, Reply
from tests.sdk_requests import ask, every_sdk, model_at, request_to

COUNTS = ("input_tokens", "output_tokens", "prompt_tokens", "completion_tokens")


@every_sdk
@pytest.mark.parametrize(
    "usage",
    [
        None,
        {},
        ["many"],
        *(dict.fromkeys(COUNTS, odd) for odd in (-1, True, 10**12, "7", 7.5, None)),
    ],
    ids=repr,
)
def test_tokens_that_the_server_did_not_count_are_unknown(
    loopback: Loopback, provider: str, usage: Any
) -> None:
    loopback.replies.append(Reply(usage=usage))

    answer = ask(request_to(model_at(loopback, provider)))

    assert (answer.input_tokens, answer.output_tokens) == (None, None)


@every_sdk
def test_the_answer_says_who_gave_it(loopback: Loopback, provider: str) -> None:
    answer = ask(request_to(model_at(loopback, provider)))

    assert (answer.served_model, answer.request_id) == ("some-model", "req_1")
    assert answer.latency_s > 0


@every_sdk
@pytest.mark.parametrize(("said", "told"), [(None, None), (5, None), ("m\ud800", "m?")])
def test_an_answer_counts_whatever_the_server_calls_its_model(
    loopback: Loopback, provider: str, said: object, told: str | None
) -> None:
    body = {
        "model": said,
        "choices": [{"message": {"content": "ok"}}],
        "content": [{"type": "text", "text": "ok"}],
    }
    loopback.replies.append(Reply(body=body))

    answer = ask(request_to(model_at(loopback, provider)))

    assert (answer.text, answer.served_model) == ("ok", told)


def test_lone_surrogates_in_a_call_of_a_tool_are_replaced(loopback: Loopback) -> None:
    function = {"name": "f", "arguments": '{"a": "oops \ud83d'}
    call = {"id": "c\ud83d", "type": "function", "function": function}
    loopback.replies.append(Reply(message={"tool_calls": [call]}))

    answer = ask(request_to(model_at(loopback, "openai")))

    (called,) = answer.tool_calls
    assert (called.id, called.malformed) == ("c?", '{"a": "oops ?')


@every_sdk
def test_lone_surrogates_are_replaced_both_ways_and_nuls_are_kept(
    loopback: Loopback, provider: str
) -> None:
    loopback.replies.append(Reply(text="a\ud800b\0c"))

    answer = ask(request_to(model_at(loopback, provider), user="\udfff?"))

    assert answer.text == "a?b\0c"
    assert loopback.requests[0].user == "??"
