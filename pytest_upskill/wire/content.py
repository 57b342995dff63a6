"""Parsing of the message in a reply: answer, reasoning, tool calls and refusal.

It supports both wire formats and servers that mix them: Mistral's chat completions have Anthropic's
``thinking`` blocks, with text blocks inside.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pytest_upskill.completion import ToolCall, clean
from pytest_upskill.wire.fields import clean_json, part

_TEXT = frozenset({"text", "output_text"})
_CALLS = frozenset({"tool_use", "tool_call", "server_tool_use", "function"})
_REASONING = ("thinking", "reasoning", "text")
"""Fields of a reasoning block that may hold its text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """The parts of a message, joined by kind."""

    text: str = ""
    reasoning: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    refusal: str = ""


def of_blocks(blocks: Iterable[Mapping[str, Any]]) -> Content:
    """Read a list of content blocks; blocks of an unknown kind are ignored.

    Raises:
        AttributeError, LookupError, TypeError: The list is malformed.
    """
    texts, reasoning, calls, refusals = [], [], [], []
    for block in blocks:
        kind = block["type"]
        if kind in _TEXT:
            texts.append(block["text"])
        elif kind in {"thinking", "reasoning"}:
            reasoning.append(_reasoning(block))
        elif kind in _CALLS:
            name = str(block.get("name", kind))
            calls.append(tool_call(name, part(block, "id"), part(block, "input")))
        elif kind == "refusal":
            refusals.append(str(block.get("refusal", "")))
    return Content(
        text="".join(texts),
        reasoning="\n\n".join(filter(None, reasoning)),
        tool_calls=tuple(calls),
        refusal="".join(refusals),
    )


def of_message(message: Mapping[str, Any]) -> Content:
    """Read the message of a chat completion.

    Raises:
        AttributeError, LookupError, TypeError: The message is malformed.
    """
    content = message.get("content")
    if not isinstance(content, list):
        content = [{"type": "text", "text": content}] if content else []
    blocks = of_blocks(content)
    # llama.cpp, DeepSeek and vLLM use the first name, Ollama and OpenRouter the second.
    fields = (message.get("reasoning_content"), message.get("reasoning"))
    aside = next((text for text in fields if isinstance(text, str) and text), "")
    calls = [*(message.get("tool_calls") or ()), *filter(None, [message.get("function_call")])]
    return Content(
        text=blocks.text,
        reasoning="\n\n".join(filter(None, (aside, blocks.reasoning))),
        tool_calls=(*blocks.tool_calls, *map(_called, calls)),
        refusal=message.get("refusal") or blocks.refusal,
    )


def tool_call(name: str, call_id: object, arguments: object) -> ToolCall:
    """Return a call of a tool; arguments that are no JSON object are kept as malformed.

    Args:
        name: Name of the tool.
        call_id: Id of the call, if the server gave it one.
        arguments: A JSON object, or its text as chat completions have it. None and an empty text
            stand for no arguments.
    """
    parsed = arguments
    if isinstance(arguments, str):
        try:
            parsed = json.loads(arguments) if arguments.strip() else {}
        except (ValueError, RecursionError):
            parsed = None
    elif arguments is None:
        parsed = {}
    known = parsed if isinstance(parsed, Mapping) else {}
    raw = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return ToolCall(
        name=name,
        id=clean(call_id) if isinstance(call_id, str) else "",
        arguments=clean_json(known),
        malformed="" if isinstance(parsed, Mapping) else clean(raw),
    )


def _reasoning(block: Mapping[str, Any]) -> str:
    value = next((block[name] for name in _REASONING if block.get(name)), "")
    return value if isinstance(value, str) else of_blocks(value).text


def _called(call: object) -> ToolCall:
    function = part(call, "function") or part(call, "custom") or call
    name = part(function, "name")
    arguments = part(function, "arguments") or part(function, "input")
    return tool_call(name if isinstance(name, str) else "unnamed", part(call, "id"), arguments)
