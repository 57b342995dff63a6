"""Streamed replies, joined to what an unstreamed reply would be.

Sources: https://docs.claude.com/en/docs/build-with-claude/streaming,
https://platform.openai.com/docs/api-reference/responses-streaming and
https://platform.openai.com/docs/api-reference/chat-streaming.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal

AgentFormat = Literal["messages", "responses", "generateContent"]
"""A wire format between a program that is an agent and its model, by the last part of its URL."""

Format = AgentFormat | Literal["chat"]

MAX_REPLY = 1 << 24
"""Maximum bytes of a decompressed reply, about a hundred times those of the longest answers."""

_Body = dict[str, Any]

_PARTIAL = "partial"
"""Field of a tool call's block in which the text of its arguments grows."""


def is_stream(data: bytes) -> bool:
    """Return whether a reply is streamed; hosts may begin with a comment, as to wait."""
    return data.lstrip().startswith((b"data:", b"event:", b":", b"id:", b"retry:"))


def read_reply(data: bytes, wire: Format) -> Mapping[str, Any]:
    """Return the body of a whole reply, streamed or not.

    Raises:
        LookupError, ValueError: It is malformed, or not a JSON object.
    """
    if not is_stream(data):
        body = json.loads(data or b"null")
        if not isinstance(body, dict):
            raise ValueError("the reply is not a JSON object")
        return body
    whole: _Body = {}
    for event in _events(data):
        _ADD_EVENT[wire](whole, event)
    for block in whole.get("content") or ():
        if isinstance(block, dict) and _PARTIAL in block:
            block["input"] = json_or_text(block.pop(_PARTIAL) or "{}")
    return whole


def is_whole(body: Mapping[str, Any]) -> bool:
    """Return whether the events of a stream say that the reply has ended, or that it failed."""
    choices = body.get("choices") or [{}]
    ends = (body.get("error"), body.get("stop_reason"), body.get("status"))
    return any(ends) or bool(choices[0].get("finish_reason"))


def _events(data: bytes) -> Iterator[_Body]:
    for line in data.split(b"\n"):
        text = line.strip().removeprefix(b"data:").strip() if line.startswith(b"data:") else b""
        if text and text != b"[DONE]":
            event = json.loads(text)
            if isinstance(event, dict):
                yield event


def json_or_text(text: str) -> Any:
    """Return what a text says as JSON, or the text if it is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _add_to_message(body: _Body, event: _Body) -> None:
    """Add an event of Anthropic's Messages API to a reply."""
    match event:
        case {"type": "message_start", "message": dict(message)}:
            body.update(message, content=[])
        case {"type": "content_block_start", "content_block": dict(block)}:
            start = {_PARTIAL: ""} if block.get("type") == "tool_use" else {}
            body.setdefault("content", []).append(block | start)
        case {"type": "content_block_delta", "index": int(index), "delta": dict(delta)}:
            _extend(body["content"][index], delta)
        case {"type": "message_delta", "delta": dict(delta)}:
            body.update(delta)
            usage = {k: v for k, v in (event.get("usage") or {}).items() if v is not None}
            body["usage"] = (body.get("usage") or {}) | usage
        case {"type": "error", "error": error}:
            body["error"] = error


def _extend(block: _Body, delta: _Body) -> None:
    for key, field in (("text", "text"), ("thinking", "thinking"), ("partial_json", _PARTIAL)):
        if isinstance(delta.get(key), str):
            block[field] = block.get(field, "") + delta[key]
    if "signature" in delta:
        block["signature"] = delta["signature"]


def _add_to_response(body: _Body, event: _Body) -> None:
    """Add an event of OpenAI's Responses API to a reply."""
    match event:
        case {"type": "response.output_item.done", "item": dict(item)}:
            body.setdefault("output", []).append(item)
        case {"type": "response.completed" | "response.incomplete" | "response.failed"}:
            items = body.get("output") or []
            body.update(event.get("response") or {})
            body["output"] = body.get("output") or items
        case {"type": "error"}:
            body["error"] = event


def _add_to_chat(body: _Body, event: _Body) -> None:
    """Add a chunk of OpenAI's Chat Completions API to a reply."""
    body.update({name: event[name] for name in ("model", "usage", "error") if event.get(name)})
    for choice in event.get("choices") or ():
        whole = body.setdefault("choices", [{"message": {"content": None}}])[0]
        message, delta = whole["message"], choice.get("delta") or {}
        for name in ("content", "refusal", "reasoning_content", "reasoning"):
            if isinstance(delta.get(name), str):
                message[name] = (message.get(name) or "") + delta[name]
        for call in delta.get("tool_calls") or ():
            _add_call(message.setdefault("tool_calls", []), call)
        whole["finish_reason"] = choice.get("finish_reason") or whole.get("finish_reason")


def _add_call(calls: list[_Body], part: _Body) -> None:
    while len(calls) <= part.get("index", 0):
        calls.append({"type": "function", "function": {"name": "", "arguments": ""}})
    call, function = calls[part.get("index", 0)], part.get("function") or {}
    call.update({"id": part["id"]} if part.get("id") else {})
    for name in ("name", "arguments"):
        call["function"][name] += function.get(name) or ""


def _add_to_generated(body: _Body, event: _Body) -> None:
    """Add an event of Gemini's API, which is a whole reply with some of the parts."""
    (candidate, *_) = event.get("candidates") or [{}]
    (whole,) = body.setdefault("candidates", [{"content": {"parts": []}}])
    whole["content"]["parts"] += (candidate.get("content") or {}).get("parts") or []
    whole |= {name: value for name, value in candidate.items() if name != "content"}
    body.update({name: value for name, value in event.items() if name != "candidates"})


_ADD_EVENT: Mapping[Format, Callable[[_Body, _Body], None]] = {
    "messages": _add_to_message,
    "responses": _add_to_response,
    "chat": _add_to_chat,
    "generateContent": _add_to_generated,
}
