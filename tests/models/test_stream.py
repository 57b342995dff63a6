"""Streamed replies are put together to what an unstreamed reply would be."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from pytest_upskill.models import Completion
from pytest_upskill.models.anthropic import read_message
from pytest_upskill.models.openai import read_chat
from pytest_upskill.models.responses import read_response
from pytest_upskill.models.streams import AgentFormat, read_reply

READ = {"messages": read_message, "responses": read_response}

MESSAGE_EVENTS: list[dict[str, Any]] = [
    {"type": "message_start", "message": {"usage": {"input_tokens": 5, "output_tokens": 1}}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking"}},
    {"type": "content_block_delta", "index": 0, "delta": {"thinking": "hm"}},
    {"type": "content_block_delta", "index": 0, "delta": {"signature": "s"}},
    {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 1, "delta": {"text": "Hé"}},
    {"type": "content_block_delta", "index": 1, "delta": {"text": "llo"}},
    {
        "type": "content_block_start",
        "index": 2,
        "content_block": {"type": "tool_use", "id": "t", "name": "Bash", "input": {}},
    },
    {"type": "content_block_delta", "index": 2, "delta": {"partial_json": '{"command"'}},
    {"type": "content_block_delta", "index": 2, "delta": {"partial_json": ': "ls"}'}},
    {
        "type": "message_delta",
        "delta": {"stop_reason": "tool_use"},
        "usage": {"output_tokens": 20, "cache_read_input_tokens": 3},
    },
]
CALL = {"type": "function_call", "call_id": "t", "name": "Bash", "arguments": '{"command": "ls"}'}
SAID = {"type": "message", "content": [{"type": "output_text", "text": "Héllo"}]}
RESPONSE_EVENTS: list[dict[str, Any]] = [
    {"type": "response.created", "response": {"output": [], "usage": None}},
    {"type": "response.output_item.done", "item": SAID},
    {"type": "response.output_item.done", "item": CALL},
    {
        "type": "response.completed",
        "response": {
            "status": "completed",
            "output": [],
            "usage": {
                "input_tokens": 8,
                "output_tokens": 20,
                "input_tokens_details": {"cached_tokens": 3},
            },
        },
    },
]
STREAMS: Mapping[AgentFormat, list[dict[str, Any]]] = {
    "messages": MESSAGE_EVENTS,
    "responses": RESPONSE_EVENTS,
}


def read(wire: AgentFormat, data: bytes) -> Completion:
    return READ[wire](read_reply(data, wire))


@pytest.mark.parametrize("wire", STREAMS)
def test_a_stream_is_read_as_the_reply_that_it_makes(wire: AgentFormat) -> None:
    events = (json.dumps(event, ensure_ascii=False) for event in STREAMS[wire])
    data = "".join(f"event: x\r\ndata: {event}\r\n\r\n" for event in events)

    completion = read(wire, data.encode())

    (call,) = completion.tool_calls
    assert (completion.text, call.name, call.arguments) == ("Héllo", "Bash", {"command": "ls"})
    assert (completion.input_tokens, completion.output_tokens) == (8, 20)
    assert completion.cache_read_tokens == 3


def test_an_unstreamed_reply_is_read_as_it_is() -> None:
    body = {"content": [{"type": "text", "text": "hi"}], "stop_reason": "end_turn"}

    assert read("messages", json.dumps(body, indent=1).encode()).text == "hi"


@pytest.mark.parametrize("data", [b"data: {broken\n", b"[]      ", b"", b"{"])
def test_a_malformed_reply_is_an_error(data: bytes) -> None:
    with pytest.raises((ValueError, LookupError)):
        read("messages", data)


def test_null_in_a_reply_of_another_server_is_neither_text_nor_refusal() -> None:
    blocks = [
        {"type": "output_text", "text": None},
        {"type": "refusal", "refusal": None},
        {"type": "output_text", "text": "Yes."},
    ]
    output = [{"type": "message", "content": blocks}]

    completion = read_response({"status": "completed", "output": output})

    assert (completion.text, completion.stop_reason) == ("Yes.", "end")


@pytest.mark.parametrize("read_body", [read_message, read_response, read_chat])
def test_a_block_without_a_type_is_malformed_rather_than_a_lost_answer(
    read_body: Callable[[Mapping[str, Any]], Completion],
) -> None:
    blocks = [{"text": "Yes."}]
    message = {"type": "message", "content": blocks}

    with pytest.raises(LookupError):
        read_body({"content": blocks, "output": [message], "choices": [{"message": message}]})
