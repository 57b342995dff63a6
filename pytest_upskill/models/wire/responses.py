"""Replies in the format of OpenAI's Responses API, which programs that are agents use.

Source: https://platform.openai.com/docs/api-reference/responses/object.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any

from pytest_upskill.models.completion import Completion, ToolCall, clean
from pytest_upskill.models.wire.content import read_blocks, tool_call
from pytest_upskill.models.wire.fields import clean_json, get_field, stop_reason, token_count


def read_response(body: Mapping[str, Any]) -> Completion:
    """Return the completion in a reply, without what only HTTP headers contain.

    Raises:
        AttributeError, LookupError, TypeError: The reply is malformed.
    """
    items, usage = body["output"], body.get("usage")
    messages = (item["content"] for item in items if item.get("type") == "message")
    blocks = chain.from_iterable(messages)
    # Servers other than OpenAI's send null where there is no text, or no refusal.
    content = read_blocks(block for block in blocks if block.get("text") or block.get("refusal"))
    return Completion(
        text=clean(content.text),
        tool_calls=tuple(_calls(items)),
        input_tokens=token_count(usage, "input_tokens"),
        output_tokens=token_count(usage, "output_tokens"),
        cache_read_tokens=token_count(get_field(usage, "input_tokens_details"), "cached_tokens")
        or 0,
        stop_reason="refusal"
        if content.refusal
        else stop_reason(get_field(body.get("incomplete_details"), "reason") or body.get("status")),
    )


def _calls(items: list[Mapping[str, Any]]) -> Iterator[ToolCall]:
    for item in items:
        if item.get("type") == "function_call":
            yield tool_call(item["name"], item.get("call_id"), item.get("arguments"))
        elif item.get("type") == "custom_tool_call":
            yield ToolCall(
                name=item["name"],
                id=clean(str(item.get("call_id") or "")),
                arguments=clean_json({"input": item.get("input")}),
            )
