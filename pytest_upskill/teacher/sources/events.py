"""The events of an agent's trace, or the sections of a document."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

Kind = Literal["user", "assistant", "call", "error", "result", "text"]

_SECTION = re.compile(r"\n(?=#{1,3} )")
_FAILS = re.compile(r"error|traceback|exit code: [1-9]|\"exit_code\": ?[1-9]", re.IGNORECASE)
_CODEX_CONTEXT = "<environment_context>"
"""Start of a message that Codex itself sends to the model."""
_HEAD = 400
"""Characters of an output that are searched for an error: Codex does not mark errors."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """A part of a source."""

    kind: Kind
    text: str


def events_of(text: str) -> tuple[str, list[Event]]:
    """Return what a source is, and its events in order.

    Claude Code's sessions are lines with ``type`` and ``message``, Codex's rollouts are lines of
    ``response_item``; anything else is Markdown, cut at its headings.
    """
    rows = _rows(text)
    if any(row.get("type") == "response_item" for row in rows):
        return "a Codex rollout", list(_codex(rows))
    if any(row.get("type") in {"user", "assistant"} and "message" in row for row in rows):
        return "a Claude Code session", list(_claude_code(rows))
    return "text", [Event(kind="text", text=part) for part in _SECTION.split(text) if part.strip()]


def _rows(text: str) -> list[Mapping[str, Any]]:
    """Return the JSON objects of a file with one per line; a torn last line is left out."""
    if not text.lstrip().startswith("{"):
        return []
    rows: list[Mapping[str, Any]] = []
    for line in text.splitlines():
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(row, dict):
            rows.append(row)
    return rows


def _claude_code(rows: Iterable[Mapping[str, Any]]) -> Iterator[Event]:
    for row in rows:
        kind, message = row.get("type"), row.get("message")
        if kind not in {"user", "assistant"} or not isinstance(message, dict):
            continue
        # Messages of Claude Code itself to the model, and the work of subagents.
        if row.get("isMeta") or row.get("isSidechain"):
            continue
        content = message.get("content")
        if isinstance(content, str):
            yield Event(kind=kind, text=content)
        for block in content if isinstance(content, list) else ():
            if isinstance(block, dict):
                yield from _block(kind, block)


def _block(kind: Kind, block: Mapping[str, Any]) -> Iterator[Event]:
    match block.get("type"):
        case "text":
            yield Event(kind=kind, text=str(block.get("text", "")))
        case "tool_use":
            called = json.dumps(block.get("input"), ensure_ascii=False)
            yield Event(kind="call", text=f"{block.get('name')} {called}")
        case "tool_result":
            result_kind: Kind = "error" if block.get("is_error") else "result"
            yield Event(kind=result_kind, text=_text(block.get("content")))


def _codex(rows: Iterable[Mapping[str, Any]]) -> Iterator[Event]:
    for row in rows:
        payload = row.get("payload")
        if row.get("type") != "response_item" or not isinstance(payload, dict):
            continue
        kind = str(payload.get("type"))
        if kind == "message" and payload.get("role") in {"user", "assistant"}:
            text = _text(payload.get("content"))
            if not text.startswith(_CODEX_CONTEXT):
                yield Event(kind=payload["role"], text=text)
        elif kind.endswith("_output"):
            text = _text(payload.get("output"))
            yield Event(kind="error" if _FAILS.search(text, 0, _HEAD) else "result", text=text)
        elif kind.endswith("_call"):
            given = (payload.get(key) for key in ("arguments", "input", "action"))
            called = next(filter(None, given), "")
            yield Event(kind="call", text=called if isinstance(called, str) else json.dumps(called))


def _text(content: object) -> str:
    """Return the text of a message's or a tool's content, whatever its form."""
    if isinstance(content, str):
        return content
    if isinstance(content, dict):
        return _text(content.get("text") or content.get("content") or content.get("output") or "")
    if isinstance(content, list):
        return "\n".join(filter(None, map(_text, content)))
    return ""
