"""Parsing of the message in a reply: answer, reasoning, tool calls and refusal.

It supports both wire formats and servers that mix them: Mistral's chat completions have Anthropic's
``thinking`` blocks, with text blocks inside.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pytest_upskill.providers.wire import part

_TEXT = frozenset({"text", "output_text"})
_CALLS = frozenset({"tool_use", "tool_call", "server_tool_use", "function"})
_REASONING = ("thinking", "reasoning", "text")
"""Fields of a reasoning block that may hold its text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """The parts of a message, joined by kind."""

    text: str = ""
    reasoning: str = ""
    tool_calls: tuple[str, ...] = ()
    """Names of the tools that the model tried to call."""
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
            calls.append(str(block.get("name", kind)))
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


def _reasoning(block: Mapping[str, Any]) -> str:
    said = next((block[name] for name in _REASONING if block.get(name)), "")
    return said if isinstance(said, str) else of_blocks(said).text


def _called(call: object) -> str:
    name = part(part(call, "function") or part(call, "custom") or call, "name")
    return name if isinstance(name, str) else "unnamed"
