"""Models that answer only in OpenAI's Responses format, or only in streams."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from openai.types.responses.response_create_params import ResponseCreateParamsNonStreaming
from pydantic import TypeAdapter

from pytest_upskill.models import (
    Client,
    Completion,
    ProviderError,
    Tool,
    ToolResult,
    Turn,
    parse_model,
)
from tests.conftest import Run, WriteSkill, budget_cases
from tests.loopback import Loopback, Received, Reply
from tests.sdk_requests import ask, every_sdk, model_at, request_to, with_client

NO_CHAT = "This model is only supported in v1/responses and not in v1/chat/completions."
NO_CHAT_EITHER = (
    "This is not a chat model and thus not supported in the v1/chat/completions endpoint. Did you "
    "mean to use v1/completions?"
)
_BODY = TypeAdapter(ResponseCreateParamsNonStreaming)


def respond_only(received: Received) -> Reply:
    """Answer as OpenAI does for a model that has no chat, and check the format of what it gets."""
    if not received.path.endswith("/responses"):
        is_new = received.body["model"] == "gpt-9"
        return Reply(status=404, text=NO_CHAT_EITHER if is_new else NO_CHAT)
    _BODY.validate_python(received.body, extra="forbid")
    text = "37" if "37" in received.body.get("instructions", "") else "No idea."
    return Reply(
        body={
            "model": received.body["model"],
            "status": "completed",
            "error": None,
            "output": [
                {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Hm."}]},
                {"type": "message", "content": [{"type": "output_text", "text": text}]},
            ],
            "usage": {"input_tokens": 5, "output_tokens": 2},
        }
    )


@pytest.mark.parametrize("name", ["o1-pro", "gpt-9"])
def test_a_model_that_has_no_chat_is_found_by_one_request(
    run_once: Run, write_skill: WriteSkill, loopback: Loopback, name: str
) -> None:
    write_skill(*budget_cases(10))
    loopback.answer = respond_only

    result = run_once("--upskill-models", f"m={name}@{loopback.openai_url}", "skills")

    assert result.ret == pytest.ExitCode.OK
    paths = Counter(received.path for received in loopback.requests)
    assert paths == {"/v1/chat/completions": 1, "/v1/responses": 20}


def test_a_slow_first_answer_holds_no_other_request_back_for_long(loopback: Loopback) -> None:
    loopback.answer = lambda _: Reply(delay=1.5)
    asked = request_to(model_at(loopback, "openai", "gpt-9"))

    async def ask_thrice(client: Client) -> None:
        await asyncio.gather(*(client.complete(replace(asked, run=run)) for run in range(3)))

    asyncio.run(with_client(asked.model, ask_thrice))

    assert loopback.peak == 3


def test_the_answer_in_the_responses_format_is_read_with_its_reasoning(loopback: Loopback) -> None:
    loopback.answer = respond_only

    answer = ask(request_to(model_at(loopback, "openai"), skill="It is 37."))

    assert (answer.text, answer.reasoning) == ("37", "Hm.")
    assert (answer.input_tokens, answer.output_tokens, answer.served_model) == (5, 2, "some-model")


def events(*values: dict[str, Any] | str) -> str:
    lines = (value if isinstance(value, str) else json.dumps(value) for value in values)
    return "".join(f"data: {line}\n\n" for line in lines)


CHAT = events(
    {"model": "s", "choices": [{"index": 0, "delta": {"role": "assistant", "content": "It "}}]},
    {"choices": [{"index": 0, "delta": {"reasoning_content": "Hm."}}]},
    {"choices": [{"index": 0, "delta": {"content": "is 37."}, "finish_reason": None}]},
    {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
    {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}},
    "[DONE]",
)
MESSAGES = events(
    {"type": "message_start", "message": {"model": "s", "usage": {"input_tokens": 3}}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "It "}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "is 37."}},
    {
        "type": "message_delta",
        "delta": {"stop_reason": "end_turn"},
        "usage": {"output_tokens": 4},
    },
    {"type": "message_stop"},
)
STREAMS = {"anthropic": MESSAGES, "openai": CHAT}


def stream(provider: str) -> Reply:
    return Reply(body=STREAMS[provider], content_type="text/event-stream")


def read(answer: Completion) -> tuple[object, ...]:
    return answer.text, answer.input_tokens, answer.output_tokens, answer.stop_reason


@every_sdk
@pytest.mark.parametrize(
    "said",
    [
        "This model only support stream mode, please enable the stream parameter.",
        "Stream must be set to true",
        "non-streaming requests are not supported",
        "streaming is required for this model",
    ],
)
def test_a_server_that_only_streams_is_asked_for_a_stream(
    loopback: Loopback, provider: str, said: str
) -> None:
    loopback.answer = lambda received: (
        stream(provider) if received.body.get("stream") else Reply(status=400, text=said)
    )

    answer = ask(request_to(model_at(loopback, provider)))

    assert read(answer) == ("It is 37.", 3, 4, "end")
    assert len(loopback.requests) == 2


@every_sdk
@pytest.mark.parametrize("start", ["", ": processing\n\n", "id: 1\n", "retry: 3000\n"])
def test_a_stream_that_nobody_asked_for_is_read(
    loopback: Loopback, provider: str, start: str
) -> None:
    body = start + STREAMS[provider]
    loopback.replies.append(Reply(body=body, content_type="text/event-stream"))

    assert read(ask(request_to(model_at(loopback, provider)))) == ("It is 37.", 3, 4, "end")


@every_sdk
def test_a_stream_that_breaks_off_is_no_answer(loopback: Loopback, provider: str) -> None:
    whole = STREAMS[provider]
    loopback.replies.append(Reply(body=whole[: len(whole) // 2], content_type="text/event-stream"))

    with pytest.raises(ProviderError, match=r"broke off \(incomplete stream\)") as caught:
        ask(request_to(model_at(loopback, provider)))

    assert (caught.value.retryable, caught.value.billable) == (True, True)


def test_a_call_in_a_stream_of_chat_is_put_together(loopback: Loopback) -> None:
    parts = [
        {"index": 0, "id": "c1", "function": {"name": "skill", "arguments": '{"na'}},
        {"index": 0, "function": {"arguments": 'me": "csv"}'}},
    ]
    chunks = [{"choices": [{"delta": {"tool_calls": [part]}}]} for part in parts]
    end = {"choices": [{"delta": {}, "finish_reason": "tool_calls"}]}
    loopback.replies.append(Reply(body=events(*chunks, end, "[DONE]")))

    (call,) = ask(request_to(parse_model(f"m=x@{loopback.openai_url}"))).tool_calls

    assert (call.name, call.id, call.arguments) == ("skill", "c1", {"name": "csv"})


def test_a_choice_among_skills_in_the_responses_format_goes_back_and_forth(
    loopback: Loopback,
) -> None:
    call = {"type": "function_call", "id": "f", "call_id": "c1", "name": "skill", "arguments": "{}"}
    reasoning = {"type": "reasoning", "id": "r", "summary": [], "encrypted_content": "x"}

    def answer(received: Received) -> Reply:
        if not received.path.endswith("/responses"):
            return Reply(status=404, text=NO_CHAT)
        _BODY.validate_python(received.body, extra="forbid")
        return Reply(body={"status": "completed", "output": [reasoning, call]})

    loopback.answer = answer
    tool = Tool.of_texts("skill", "Load a skill.", name="Its name.")
    first = replace(request_to(model_at(loopback, "openai")), tools=(tool,))

    completion = ask(first)
    results = (ToolResult(call_id="c1", text="loaded"),)
    turn = Turn(assistant_blocks=completion.assistant_blocks, results=results)
    ask(replace(first, turns=(turn,)))

    assert [each.name for each in completion.tool_calls] == ["skill"]
    assert loopback.requests[-1].body["input"][1:] == [
        reasoning,
        call,
        {"type": "function_call_output", "call_id": "c1", "output": "loaded"},
    ]
