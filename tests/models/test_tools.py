"""Requests that offer tools, and conversations with calls and results, in both wire formats."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_upskill.answers.prices import max_input_tokens
from pytest_upskill.answers.recordings import Cache, identity
from pytest_upskill.models import (
    Completion,
    ProviderError,
    Request,
    Tool,
    ToolCall,
    ToolResult,
    Turn,
    parse_model,
)
from tests.loopback import Loopback, Reply
from tests.sdk_requests import ask, every_sdk, model_at, request_to

SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
NAMED = {"name": "read_file", "description": "Read a text file."}
READ = Tool(**NAMED, schema=SCHEMA)
THOUGHT = {"type": "thinking", "thinking": "Look first.", "signature": "c2ln"}
BLOCKS: list[dict[str, Any]] = [
    THOUGHT,
    {"type": "text", "text": "I look."},
    {"type": "tool_use", "id": "t1", "name": "read_file", "input": {"path": "a.txt"}},
    {"type": "brand_new_block", "shape": "round"},
]
CALL = {
    "id": "t1",
    "type": "function",
    "function": {"name": "read_file", "arguments": '{"path": "a.txt"}'},
    "extra_content": {"google": {"thought_signature": "c2ln"}},
}
MESSAGE: dict[str, Any] = {"content": "I look.", "reasoning_content": "Hm.", "tool_calls": [CALL]}
LOOKED = {
    "anthropic": Reply(content=BLOCKS, stop="tool_use"),
    "openai": Reply(message=MESSAGE, stop="tool_calls"),
}


def offering(loopback: Loopback, provider: str) -> Request:
    return replace(request_to(model_at(loopback, provider)), tools=(READ,))


def looked(loopback: Loopback, provider: str) -> Completion:
    loopback.replies.append(LOOKED[provider])
    return ask(offering(loopback, provider))


def called(loopback: Loopback, provider: str, arguments: object, **more: Any) -> ToolCall:
    """Return the call that is read from a reply with these arguments."""
    function = {"name": "read_file", "arguments": arguments}
    loopback.replies.append(
        Reply(message={"tool_calls": [{**CALL, "function": function, **more}]})
        if provider == "openai"
        else Reply(content=[{**BLOCKS[2], "input": arguments, **more}])
    )
    (call,) = ask(offering(loopback, provider)).tool_calls
    return call


@pytest.mark.parametrize(
    ("provider", "offered"),
    [
        ("anthropic", {**NAMED, "input_schema": SCHEMA}),
        ("openai", {"type": "function", "function": {**NAMED, "parameters": SCHEMA}}),
    ],
)
def test_tools_are_offered_in_the_words_of_each_format(
    loopback: Loopback, provider: str, offered: dict[str, Any]
) -> None:
    ask(offering(loopback, provider))

    assert loopback.requests[0].body["tools"] == [offered]


@every_sdk
def test_calls_are_read_with_id_and_arguments_apart_from_the_text(
    loopback: Loopback, provider: str
) -> None:
    completion = looked(loopback, provider)

    assert completion.tool_calls == (
        ToolCall(name="read_file", id="t1", arguments={"path": "a.txt"}),
    )
    assert completion.text == "I look."


def test_anthropics_blocks_and_results_are_sent_back(loopback: Loopback) -> None:
    completion = looked(loopback, "anthropic")
    results = (
        ToolResult(call_id="t1", text="37"),
        ToolResult(call_id="t2", text="No such file.", failed=True),
    )
    turn = Turn(assistant_blocks=completion.assistant_blocks, results=results)

    ask(replace(offering(loopback, "anthropic"), turns=(turn,)))

    first, second = (request.body for request in loopback.requests)
    failed = {"tool_use_id": "t2", "content": "No such file.", "is_error": True}
    assert second["messages"] == [
        *first["messages"],
        {"role": "assistant", "content": BLOCKS},
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "t1", "content": "37"},
                {"type": "tool_result", **failed, "cache_control": {"type": "ephemeral"}},
            ],
        },
    ]
    assert {**second, "messages": 0} == {**first, "messages": 0}


def test_openais_message_and_results_are_sent_back(loopback: Loopback) -> None:
    completion = looked(loopback, "openai")
    results = (ToolResult(call_id="t1", text="37"),)
    turn = Turn(assistant_blocks=completion.assistant_blocks, results=results)

    ask(replace(offering(loopback, "openai"), turns=(turn,)))

    first, second = (request.body for request in loopback.requests)
    assert second["messages"] == [
        *first["messages"],
        {"role": "assistant", **MESSAGE},
        {"role": "tool", "tool_call_id": "t1", "content": "37"},
    ]


@pytest.mark.parametrize("arguments", ['{"path": "a.t', "[1]", "37", "a.txt"])
def test_malformed_arguments_are_kept_and_marked(loopback: Loopback, arguments: str) -> None:
    call = called(loopback, "openai", arguments)

    assert (call.arguments, call.malformed) == ({}, arguments)


@every_sdk
@pytest.mark.parametrize(
    ("arguments", "malformed"), [(["a.txt"], '["a.txt"]'), ("", ""), (None, "")]
)
def test_only_an_object_or_nothing_is_well_formed(
    loopback: Loopback, provider: str, arguments: object, malformed: str
) -> None:
    call = called(loopback, provider, arguments)

    assert (call.arguments, call.malformed) == ({}, malformed)


@every_sdk
def test_lone_surrogates_in_a_call_can_be_sent_back(loopback: Loopback, provider: str) -> None:
    text = "a\ud800b"
    loopback.replies.append(
        replace(LOOKED[provider], content=[{**BLOCKS[2], "input": {"path": text}}])
        if provider == "anthropic"
        else Reply(message={"content": text, "tool_calls": [CALL]})
    )
    completion = ask(offering(loopback, provider))
    turn = Turn(assistant_blocks=completion.assistant_blocks, results=())

    ask(replace(offering(loopback, provider), turns=(turn,)))

    assert "a?b" in json.dumps(loopback.requests[1].body)


@every_sdk
def test_a_plain_question_keeps_no_blocks(loopback: Loopback, provider: str) -> None:
    loopback.replies.append(LOOKED[provider])

    completion = ask(request_to(model_at(loopback, provider)))

    assert completion.tool_calls
    assert completion.assistant_blocks == ()


def plain() -> Request:
    model = parse_model("m=openai:small@http://127.0.0.1:1/v1")
    return replace(request_to(model, skill="\nUse tabs."), run=2)


def test_a_plain_request_is_recorded_under_the_name_it_always_had() -> None:
    known = "90802db967ab0d046c9d71b02db9f491f709064e81bf3f66109a11918d9d123d"

    assert identity(plain(), "http://127.0.0.1:1/v1") == known


def test_tools_blocks_and_results_are_part_of_what_is_asked() -> None:
    asked = replace(plain(), tools=(READ,))
    turns = [
        Turn(assistant_blocks=(block,), results=(ToolResult(call_id="t1", text=text),))
        for block in BLOCKS[:2]
        for text in ("37", "38")
    ]
    requests = [plain(), asked, *(replace(asked, turns=(turn,)) for turn in turns)]

    assert len({identity(request, "u") for request in requests}) == len(requests)


def test_a_recorded_call_is_replayed_with_its_blocks(loopback: Loopback, tmp_path: Path) -> None:
    completion = looked(loopback, "anthropic")
    asked = offering(loopback, "anthropic")

    Cache(tmp_path, "auto").store(asked, "u", completion, "a")

    assert Cache(tmp_path, "replay").load(asked, "u") == replace(completion, replayed=True)


def test_the_most_that_a_conversation_costs_covers_all_of_it() -> None:
    turn = Turn(assistant_blocks=(MESSAGE,), results=(ToolResult(call_id="t1", text="x" * 5000),))

    alone, conversation = plain(), replace(plain(), tools=(READ,), turns=(turn,))

    assert max_input_tokens(conversation) > max_input_tokens(alone) + 5000


def test_a_model_without_tools_is_not_stopped_for_other_requests(loopback: Loopback) -> None:
    said = "No endpoints found that support tool use."
    loopback.answer = lambda _: Reply(status=404, text=said)

    with pytest.raises(ProviderError, match=said) as error:
        ask(offering(loopback, "openai"))

    assert (error.value.retryable, error.value.fatal) == (False, False)
