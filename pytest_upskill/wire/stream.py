"""Streamed replies (server-sent events) to agents' programs, put together to whole ones.

Sources: https://docs.claude.com/en/docs/build-with-claude/streaming and
https://platform.openai.com/docs/api-reference/responses-streaming.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Literal

AgentFormat = Literal["messages", "responses"]
"""A wire format between a program that is an agent and its model; also the end of its URL."""

MAX_REPLY = 1 << 24
"""Maximum bytes of a reply."""

_Body = dict[str, Any]


class ReplyReader:
    """Reads a reply, streamed or not, as its bytes arrive.

    Args:
        wire: The format.
    """

    def __init__(self, wire: AgentFormat) -> None:
        self._put = _PUT[wire]
        self._body: _Body = {}
        self._rest = b""
        self._whole = bytearray()
        self._streamed: bool | None = None
        self._size = 0

    def feed(self, data: bytes) -> None:
        """Read the next bytes.

        Raises:
            ValueError: The reply is malformed or larger than `MAX_REPLY`.
        """
        self._size += len(data)
        if self._size > MAX_REPLY:
            raise ValueError(f"the reply is larger than {MAX_REPLY >> 20} MiB")
        if self._streamed is None:
            start = (bytes(self._whole) + data).lstrip()[:6]
            if len(start) < len(b"event:"):
                self._whole += data
                return
            self._streamed = not start.startswith((b"{", b"["))
            data, self._whole = bytes(self._whole) + data, bytearray()
        if not self._streamed:
            self._whole += data
            return
        *lines, self._rest = (self._rest + data).split(b"\n")
        for event in _events(lines):
            self._put(self._body, event)

    def body(self) -> Mapping[str, Any]:
        """Return the whole reply.

        Raises:
            ValueError: It is not a JSON object.
        """
        if not self._streamed:
            body = json.loads(bytes(self._whole) or b"null")
            if not isinstance(body, dict):
                raise ValueError("the reply is not a JSON object")
            return body
        for event in _events([self._rest]):
            self._put(self._body, event)
        for block in self._body.get("content") or ():
            if isinstance(block, dict) and "partial" in block:
                block["input"] = _arguments(block.pop("partial"))
        return self._body


def _events(lines: list[bytes]) -> Iterator[_Body]:
    for line in lines:
        data = line.strip().removeprefix(b"data:").strip() if line.startswith(b"data:") else b""
        if data:
            event = json.loads(data)
            if isinstance(event, dict):
                yield event


def _arguments(text: str) -> Any:
    try:
        return json.loads(text or "{}")
    except ValueError:
        return text


def _put_message(body: _Body, event: _Body) -> None:
    """Add an event of Anthropic's Messages to a reply."""
    match event:
        case {"type": "message_start", "message": dict(message)}:
            body.update(message, content=[])
        case {"type": "content_block_start", "content_block": dict(block)}:
            start = {"partial": ""} if block.get("type") == "tool_use" else {}
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
    for key, field in (("text", "text"), ("thinking", "thinking"), ("partial_json", "partial")):
        if isinstance(delta.get(key), str):
            block[field] = block.get(field, "") + delta[key]
    if "signature" in delta:
        block["signature"] = delta["signature"]


def _put_response(body: _Body, event: _Body) -> None:
    """Add an event of OpenAI's Responses to a reply."""
    match event:
        case {"type": "response.output_item.done", "item": dict(item)}:
            body.setdefault("output", []).append(item)
        case {"type": "response.completed" | "response.incomplete" | "response.failed"}:
            items = body.get("output") or []
            body.update(event.get("response") or {})
            body["output"] = body.get("output") or items
        case {"type": "error"}:
            body["error"] = event


_PUT: Mapping[AgentFormat, Callable[[_Body, _Body], None]] = MappingProxyType(
    {"messages": _put_message, "responses": _put_response}
)
