"""Models that answer only in OpenAI's Responses format, and servers that only stream."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from openai.types.responses.response_create_params import ResponseCreateParamsNonStreaming
from pydantic import TypeAdapter

from pytest_upskill.models import (
    Tool,
    ToolResult,
    Turn,
)
from tests.conftest import Run, WriteSkill, budget_cases
from tests.loopback import Loopback, Received, Reply
from tests.sdk_requests import ask, every_sdk, fault, model_at, request_to

NO_CHAT = "This model is only supported in v1/responses and not in v1/chat/completions."
_BODY = TypeAdapter(ResponseCreateParamsNonStreaming)


def respond_only(received: Received) -> Reply:
    """Answer as OpenAI does for a model that has no chat, and check the format of what it gets."""
    if not received.path.endswith("/responses"):
        return Reply(status=404, text=NO_CHAT)
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
    assert paths["/v1/responses"] == 20
    assert paths["/v1/chat/completions"] <= 20


def test_the_answer_in_the_responses_format_is_read_with_its_reasoning(loopback: Loopback) -> None:
    loopback.answer = respond_only

    answer = ask(request_to(model_at(loopback, "openai"), skill="It is 37."))

    assert (answer.text, answer.reasoning) == ("37", "Hm.")
    assert (answer.input_tokens, answer.output_tokens, answer.served_model) == (5, 2, "some-model")


@pytest.mark.parametrize(
    "said",
    [
        "This model only support stream mode, please enable the stream parameter.",
        "Stream must be set to true",
        "non-streaming requests are not supported",
        "streaming is required for this model",
    ],
)
@every_sdk
def test_a_server_that_only_streams_is_told_apart(
    loopback: Loopback, provider: str, said: str
) -> None:
    error = fault(loopback, provider, Reply(status=400, text=said))

    assert str(error).endswith(
        f"{said}: it answers only in streams, which are not read: choose another host or server"
    )


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
