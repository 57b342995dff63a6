"""OpenAI's Responses API: bodies and replies.

Source: https://platform.openai.com/docs/api-reference/responses.
"""

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any

from pytest_upskill.models import content
from pytest_upskill.models.completion import Completion, ToolCall, clean
from pytest_upskill.models.request import Request, Tool


def responses_body(request: Request) -> dict[str, Any]:
    """Return the JSON body of a request; the format has no seed and no stop texts."""
    parameters, system = request.model.parameters, clean(request.system)
    items: list[dict[str, Any]] = [{"role": "user", "content": clean(request.user)}]
    for turn in request.turns:
        items += map(dict, turn.assistant_blocks)
        items += (
            {"type": "function_call_output", "call_id": each.call_id, "output": clean(each.text)}
            for each in turn.results
        )
    body: dict[str, Any] = {
        "model": request.model.name,
        "instructions": system or None,
        "input": items,
        "max_output_tokens": request.max_tokens,
        "store": False,
        "temperature": parameters.temperature,
        "top_p": parameters.top_p,
        "reasoning": {"effort": parameters.effort} if parameters.effort else None,
    }
    if request.tools:
        # Without it, the reasoning before a call could not be sent back.
        body["include"] = ["reasoning.encrypted_content"]
        body["tools"] = [
            {"type": "function", **as_function(tool), "strict": False} for tool in request.tools
        ]
    return parameters.body_with(body)


def as_function(tool: Tool) -> dict[str, Any]:
    """Return a tool as both of OpenAI's formats describe a function."""
    return {"name": tool.name, "description": tool.description, "parameters": tool.schema}


def read_response(body: Mapping[str, Any]) -> Completion:
    """Return the completion in a reply, without what only HTTP headers contain.

    Raises:
        AttributeError, LookupError, TypeError: The reply is malformed.
    """
    items, usage = body["output"], body.get("usage")
    messages = (item["content"] for item in items if item.get("type") == "message")
    blocks = chain.from_iterable(messages)
    # Servers other than OpenAI's send null where there is no text, or no refusal.
    filled = (block for block in blocks if block.get("text") or block.get("refusal"))
    message = content.read_blocks(filled)
    summaries = (item.get("summary") for item in items if item.get("type") == "reasoning")
    details = content.get_field(usage, "input_tokens_details")
    reason = content.get_field(body.get("incomplete_details"), "reason") or body.get("status")
    return Completion(
        text=clean(message.text or message.refusal),
        reasoning=clean("\n\n".join(part["text"] for parts in summaries for part in parts or ())),
        tool_calls=tuple(_calls(items)),
        assistant_blocks=tuple(content.clean_json(items)),
        input_tokens=content.token_count(usage, "input_tokens"),
        output_tokens=content.token_count(usage, "output_tokens"),
        cache_read_tokens=content.token_count(details, "cached_tokens") or 0,
        stop_reason=content.stop_reason("refusal" if message.refusal else reason),
    )


def _calls(items: list[Mapping[str, Any]]) -> Iterator[ToolCall]:
    for item in items:
        if item.get("type") == "function_call":
            yield content.tool_call(item["name"], item.get("call_id"), item.get("arguments"))
        elif item.get("type") == "custom_tool_call":
            yield content.tool_call(item["name"], item.get("call_id"), {"input": item.get("input")})
