"""Requests and replies in Anthropic's format."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_upskill.models import Completion, Request, parse_model
from tests.loopback import Loopback, Reply
from tests.sdk_requests import ask, model_at, request_to


def completion(loopback: Loopback, reply: Reply) -> Completion:
    loopback.replies.append(reply)
    return ask(to(loopback))


def to(loopback: Loopback, *, frame: str = "Be brief.", skill: str = "", user: str = "") -> Request:
    return request_to(model_at(loopback, "anthropic"), frame=frame, skill=skill, user=user)


def test_the_request_is_what_the_api_wants_and_nothing_else(loopback: Loopback) -> None:
    ask(to(loopback, frame="Be brief.", user="Why?"))

    (request,) = loopback.requests
    assert request.path == "/v1/messages"
    assert request.headers["anthropic-version"]
    assert request.body == {
        "model": "some-model",
        "max_tokens": 64,
        "system": [{"type": "text", "text": "Be brief."}],
        "messages": [{"role": "user", "content": "Why?"}],
    }


def test_the_arms_differ_in_one_cached_block(loopback: Loopback) -> None:
    ask(to(loopback, skill=""))
    ask(to(loopback, skill="\nUse tabs."))

    without, with_skill = (request.body for request in loopback.requests)
    cached = {"type": "text", "text": "\nUse tabs.", "cache_control": {"type": "ephemeral"}}
    assert with_skill["system"] == [*without["system"], cached]
    assert {**with_skill, "system": 0} == {**without, "system": 0}


def test_an_empty_system_prompt_is_left_out(loopback: Loopback) -> None:
    ask(to(loopback, frame=""))

    assert "system" not in loopback.requests[0].body


def test_a_base_url_that_ends_in_v1_is_the_same_host(loopback: Loopback) -> None:
    model = parse_model(f"m=anthropic:some-model@{loopback.url}/v1")

    ask(request_to(model))

    assert loopback.requests[0].path == "/v1/messages"


def test_the_answer_is_the_text_blocks_joined(loopback: Loopback) -> None:
    content: list[dict[str, Any]] = [
        {"type": "thinking", "thinking": "hm", "signature": "s"},
        {"type": "text", "text": "one "},
        {"type": "brand_new_block", "shape": "round"},
        {"type": "text", "text": "two"},
    ]

    answer = completion(loopback, Reply(content=content))

    assert answer.text == "one two"


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("end_turn", "end"),
        ("stop_sequence", "end"),
        ("max_tokens", "max_tokens"),
        ("model_context_window_exceeded", "max_tokens"),
        ("refusal", "refusal"),
        ("tool_use", "other"),
        ("brand_new_reason", "other"),
    ],
)
def test_stop_reasons_are_told_apart(loopback: Loopback, said: str, meant: str) -> None:
    answer = completion(loopback, Reply(stop=said))

    assert answer.stop_reason == meant


def test_cached_tokens_are_part_of_the_prompt(loopback: Loopback) -> None:
    usage = {
        "input_tokens": 5,
        "cache_creation_input_tokens": 30,
        "cache_read_input_tokens": 200,
        "output_tokens": 7,
    }

    answer = completion(loopback, Reply(usage=usage))

    assert (answer.input_tokens, answer.output_tokens) == (235, 7)
    assert (answer.cache_read_tokens, answer.cache_write_tokens) == (200, 30)


def test_a_model_that_retires_soon_is_asked_without_a_warning(loopback: Loopback) -> None:
    model = model_at(loopback, "anthropic", "claude-sonnet-4-5")

    assert ask(request_to(model)).text == "ok"
