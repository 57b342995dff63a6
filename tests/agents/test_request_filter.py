"""What of an agent's request may reach the host of its model."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pytest_upskill.agents.request_filter import RefusedBody, filter_request, max_prompt_tokens
from pytest_upskill.models.streams import AgentFormat

TOOL = {"name": "Bash", "description": "d", "input_schema": {"type": "object"}}
ITEMS: dict[AgentFormat, str] = {
    "messages": "messages",
    "responses": "input",
    "generateContent": "contents",
}


def rebuilt(wire: AgentFormat, **body: Any) -> dict[str, Any]:
    return filter_request(wire, {ITEMS[wire]: [], **body}, model="pinned", max_tokens=100)


@pytest.mark.parametrize(
    ("wire", "limit"),
    [("messages", "max_tokens"), ("responses", "max_output_tokens")],
)
def test_the_model_is_pinned_and_the_output_limit_clamped(wire: AgentFormat, limit: str) -> None:
    body = rebuilt(wire, model="opus", **{limit: 64000})

    assert (body["model"], body[limit]) == ("pinned", 100)
    assert rebuilt(wire)[limit] == 100
    assert rebuilt(wire, **{limit: 7})[limit] == 7


@pytest.mark.parametrize(
    ("wire", "field", "value"),
    [
        ("messages", "mcp_servers", [{"url": "https://example.org"}]),
        ("messages", "container", "c_1"),
        ("messages", "service_tier", "auto"),
        ("messages", "inference_geo", "us"),
        ("responses", "background", True),
        ("responses", "previous_response_id", "resp_1"),
        ("responses", "conversation", "conv_1"),
        ("responses", "service_tier", "priority"),
        ("responses", "n", 3),
        ("generateContent", "cachedContent", "cachedContents/1"),
        ("generateContent", "serviceTier", "priority"),
    ],
)
def test_what_costs_more_or_acts_at_the_host_is_dropped(
    wire: AgentFormat, field: str, value: object
) -> None:
    assert field not in rebuilt(wire, **{field: value})


@pytest.mark.parametrize(
    ("wire", "tool"),
    [
        ("messages", {"type": "web_search_20250305", "name": "w"}),
        ("messages", {"type": "mcp_toolset", "mcp_server_name": "x"}),
        ("responses", {"type": "mcp", "server_url": "https://example.org"}),
        ("responses", {"type": "code_interpreter", "container": "auto"}),
        ("generateContent", {"googleSearch": {}}),
        ("generateContent", {"urlContext": {}}),
    ],
)
def test_a_tool_of_the_host_is_dropped(wire: AgentFormat, tool: dict[str, Any]) -> None:
    own: dict[str, Any] = {"type": "function", "name": "Bash"} if wire == "responses" else TOOL
    if wire == "generateContent":
        own = {"functionDeclarations": [{"name": "run_shell_command"}]}

    assert rebuilt(wire, tools=[tool, own])["tools"] == [own]


@pytest.mark.parametrize(
    ("wire", "part"),
    [
        ("messages", {"type": "image", "source": {"type": "url", "url": "https://e.org"}}),
        ("messages", {"type": "document", "source": {"type": "file", "file_id": "f_1"}}),
        (
            "messages",
            {
                "type": "document",
                "source": {
                    "type": "content",
                    "content": [
                        {"type": "image", "source": {"type": "url", "url": "https://e.org"}}
                    ],
                },
            },
        ),
        ("messages", {"type": "mcp_tool_use", "id": "1"}),
        ("messages", {"type": "tool_result", "content": [{"type": "server_tool_use"}]}),
        ("responses", {"type": "item_reference", "id": "i"}),
        ("responses", {"type": "input_image", "image_url": "https://example.org/a.png"}),
        ("responses", {"type": "input_image", "file_id": "f_1"}),
        ("responses", {"type": "input_image", "file_url": "https://example.org/a.pdf"}),
        ("messages", {"type": "image", "source": ["https://example.org/a.png"]}),
    ],
)
def test_a_conversation_with_what_the_host_would_fetch_is_refused(
    wire: AgentFormat, part: dict[str, Any]
) -> None:
    with pytest.raises(RefusedBody):
        rebuilt(wire, **{ITEMS[wire]: [{"role": "user", "content": [part]}]})


@pytest.mark.parametrize(
    ("wire", "fields"),
    [
        ("messages", {"system": [{"type": "image", "source": {"type": "url", "url": "http://e"}}]}),
        ("responses", {"instructions": [{"type": "input_file", "file_url": "http://e"}]}),
        ("messages", {"messages": [{"role": "user", "content": [{"source": {"type": "url"}}]}]}),
        ("responses", {"input": [{"role": "user", "content": [{"image_url": "http://e"}]}]}),
    ],
    ids=["system", "instructions", "source without a type", "image without a type"],
)
def test_what_the_host_would_fetch_is_refused_wherever_it_stands(
    wire: AgentFormat, fields: dict[str, Any]
) -> None:
    with pytest.raises(RefusedBody):
        rebuilt(wire, **fields)


def test_a_reference_to_a_stored_item_is_refused_also_without_its_type() -> None:
    with pytest.raises(RefusedBody, match="without a type or a role"):
        rebuilt("responses", input=[{"role": "user", "content": "hi"}, {"id": "msg_1"}])


def test_a_conversation_that_is_nested_too_deeply_is_refused() -> None:
    deep: list[Any] = []
    for _ in range(5000):
        deep = [deep]

    with pytest.raises(RefusedBody, match="nested too deeply"):
        rebuilt("messages", messages=deep)


def test_what_an_agent_needs_is_passed_on_unchanged() -> None:
    content = [
        {"type": "text", "text": "hi", "cache_control": {"type": "ephemeral"}},
        {"type": "image", "source": {"type": "base64", "data": "aGk="}},
        {"type": "tool_result", "tool_use_id": "t", "content": [{"type": "text", "text": "x"}]},
        {"type": "tool_use", "id": "t", "name": "Bash", "input": {"type": "server_tool_use"}},
    ]
    messages = [{"role": "user", "content": content}, {"role": "assistant", "content": "ok"}]

    body = rebuilt("messages", messages=messages, tools=[TOOL], system="s", stream=True)

    assert body["messages"] == messages
    assert body["tools"] == [TOOL]
    assert (body["system"], body["stream"]) == ("s", True)


def image(wire: AgentFormat) -> dict[str, Any]:
    if wire == "messages":
        return {"type": "image", "source": {"type": "base64", "data": "aGk="}}
    return {"type": "input_image", "image_url": "data:image/png;base64,aGk="}


@pytest.mark.parametrize(("wire", "most"), [("messages", 5_000), ("responses", 50_000)])
def test_an_image_counts_as_many_tokens_as_its_vendor_may_charge(
    wire: AgentFormat, most: int
) -> None:
    call = {"type": "tool_result", "tool_use_id": "t", "content": [image(wire)]}
    if wire == "responses":
        call = {"type": "function_call_output", "call_id": "t", "output": [image(wire)]}
    message = {"role": "user", "content": [image(wire), image(wire)]}

    body = rebuilt(wire, **{ITEMS[wire]: [message, {"role": "user", "content": [call]}]})

    content = json.dumps(body).encode()
    assert max_prompt_tokens(wire, content) == len(content) + 3 * most
    with pytest.raises(RefusedBody, match="more than 100 images"):
        max_prompt_tokens(wire, json.dumps([image(wire)] * 101).encode())


def test_a_text_about_an_image_is_none() -> None:
    content = json.dumps({"text": json.dumps(image("messages"))}).encode()

    assert max_prompt_tokens("messages", content) == len(content)


@pytest.mark.parametrize("place", ["message", "result"])
def test_a_pdf_is_left_out_because_its_tokens_cannot_be_bounded(place: str) -> None:
    source = {"type": "base64", "media_type": "application/pdf", "data": "aGk="}
    parts: list[dict[str, Any]] = [{"type": "document", "source": source}]
    if place == "result":
        parts = [{"type": "tool_result", "tool_use_id": "t", "content": parts}]

    body = rebuilt("messages", messages=[{"role": "user", "content": parts}])

    sent = str(body["messages"])
    assert "aGk=" not in sent
    assert "This document is left out" in sent


def test_a_source_under_another_type_is_refused() -> None:
    source = {"type": "base64", "media_type": "application/pdf", "data": "aGk="}

    with pytest.raises(RefusedBody, match="with a source"):
        rebuilt(
            "messages", messages=[{"role": "user", "content": [{"type": "text", "source": source}]}]
        )


def test_no_cache_has_a_longer_lifetime_which_costs_more() -> None:
    long = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}
    result = {"type": "tool_result", "content": [{"type": "text", "text": "x", **long}], **long}

    body = rebuilt(
        "messages",
        messages=[{"role": "user", "content": [result]}],
        system=[{"type": "text", "text": "s", **long}],
        tools=[{**TOOL, **long}],
        **long,
    )

    assert "ttl" not in str(body)
    assert str(body).count("'cache_control': {'type': 'ephemeral'}") == 4


def test_the_host_stores_nothing() -> None:
    assert rebuilt("responses", store=True)["store"] is False


@pytest.mark.parametrize(("budget", "kept"), [(50, 50), (5000, None)])
def test_thinking_fits_below_the_clamped_output_limit(budget: int, kept: int | None) -> None:
    body = rebuilt("messages", thinking={"type": "enabled", "budget_tokens": budget})

    assert body.get("thinking", {}).get("budget_tokens") == kept


def test_a_request_of_gemini_has_one_answer_of_limited_length_and_no_files_of_the_host() -> None:
    config = {"candidateCount": 8, "maxOutputTokens": 64000, "temperature": 1}
    said = {
        "role": "user",
        "parts": [{"text": "Why?"}, inline("image/png"), inline("application/pdf")],
    }

    body = rebuilt("generateContent", contents=[said], generationConfig=config)

    assert body["generationConfig"] == {"maxOutputTokens": 100, "temperature": 1}
    first, image, document = body["contents"][0]["parts"]
    assert (first, image) == ({"text": "Why?"}, inline("image/png"))
    assert document.keys() == {"text"}
    content = json.dumps(body).encode()
    assert max_prompt_tokens("generateContent", content) == len(content) + 5_000
    stored = {"fileData": {"fileUri": "https://example.org/a"}}
    returned = {"functionResponse": {"name": "read", "response": {}, "parts": [stored]}}
    nested = {"functionResponse": {"name": "read", "parts": stored}}
    refused: list[Any] = [stored, returned, nested, {"executableCode": {}}, "text"]
    for part in refused:
        with pytest.raises(RefusedBody, match="is not allowed"):
            rebuilt("generateContent", contents=[{"parts": [part]}])
        with pytest.raises(RefusedBody, match="is not allowed"):
            rebuilt("generateContent", systemInstruction={"parts": [part]})


def inline(kind: str) -> dict[str, Any]:
    return {"inlineData": {"mimeType": kind, "data": "AAAA"}}
