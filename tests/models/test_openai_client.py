"""Requests and replies in the format of chat completions."""

from __future__ import annotations

import pytest

from pytest_upskill.models import Completion, Request
from tests.loopback import Loopback, Received, Reply
from tests.sdk_requests import ask, model_at, request_to


def completion(loopback: Loopback, reply: Reply) -> Completion:
    loopback.replies.append(reply)
    return ask(to(loopback))


def to(loopback: Loopback, *, frame: str = "Be brief.", skill: str = "", user: str = "") -> Request:
    return request_to(model_at(loopback, "openai"), frame=frame, skill=skill, user=user)


def test_the_request_is_what_every_server_reads_and_nothing_else(loopback: Loopback) -> None:
    ask(to(loopback, frame="Be brief.", skill="\nUse tabs.", user="Why?"))

    (request,) = loopback.requests
    assert request.path == "/v1/chat/completions"
    assert request.body == {
        "model": "some-model",
        "max_tokens": 64,
        "messages": [
            {"role": "system", "content": "Be brief.\nUse tabs."},
            {"role": "user", "content": "Why?"},
        ],
    }


def test_an_empty_system_prompt_is_left_out(loopback: Loopback) -> None:
    ask(to(loopback, frame=""))

    assert [m["role"] for m in loopback.requests[0].body["messages"]] == ["user"]


def test_a_model_name_is_sent_verbatim(loopback: Loopback) -> None:
    name = "unsloth/GLM-4.7-Flash-GGUF:Q4_0"

    ask(request_to(model_at(loopback, "openai", name)))

    assert loopback.requests[0].body["model"] == name


def test_a_refusal_is_its_own_outcome_with_its_words(loopback: Loopback) -> None:
    answer = completion(loopback, Reply(message={"content": None, "refusal": "I will not."}))

    assert (answer.text, answer.stop_reason) == ("I will not.", "refusal")


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("stop", "end"),
        ("length", "max_tokens"),
        ("content_filter", "refusal"),
        ("tool_calls", "other"),
        ("brand_new_reason", "other"),
    ],
)
def test_finish_reasons_are_told_apart(loopback: Loopback, said: str, meant: str) -> None:
    answer = completion(loopback, Reply(stop=said))

    assert answer.stop_reason == meant


def test_cached_tokens_are_already_in_the_prompt(loopback: Loopback) -> None:
    usage = {
        "prompt_tokens": 235,
        "completion_tokens": 7,
        "total_tokens": 242,
        "prompt_tokens_details": {"cached_tokens": 200, "cache_write_tokens": 30},
    }

    answer = completion(loopback, Reply(usage=usage))

    assert (answer.input_tokens, answer.output_tokens) == (235, 7)
    assert (answer.cache_read_tokens, answer.cache_write_tokens) == (200, 30)


@pytest.mark.parametrize(("total", "output"), [(8030, 8010), (30, 10), (0, 10), ("?", 10)])
def test_reasoning_that_only_the_total_counts_is_output(
    loopback: Loopback, total: object, output: int
) -> None:
    usage = {"prompt_tokens": 20, "completion_tokens": 10, "total_tokens": total}

    assert completion(loopback, Reply(usage=usage)).output_tokens == output


def test_an_answer_in_parts_is_read_with_its_reasoning_apart(loopback: Loopback) -> None:
    thought = {"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}
    parts = [thought, {"type": "text", "text": "It is "}, {"type": "text", "text": "37."}]

    answer = completion(loopback, Reply(message={"content": parts}))

    assert (answer.text, answer.reasoning) == ("It is 37.", "Hm.")


@pytest.mark.parametrize("status", [400, 500])
def test_a_server_without_system_messages_gets_one_message_for_both(
    loopback: Loopback, status: int
) -> None:
    def answer(received: Received) -> Reply:
        if received.system:
            return Reply(status=status, text="System role not supported")
        return Reply(text=received.user)

    loopback.answer = answer

    answered = ask(to(loopback, frame="Be brief.", skill="\nUse tabs.", user="Why?"))

    assert answered.text == "Be brief.\nUse tabs.\n\nWhy?"
    assert len(loopback.requests) == 2
