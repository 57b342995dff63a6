"""The content of replies in any wire format: answer, reasoning, tool calls, refusal, counts.

Servers mix the formats: Mistral's chat completions have Anthropic's ``thinking`` blocks, with text
blocks inside. Fields may be missing or have another type than the API documents.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from pytest_upskill.models.completion import MAX_TOKENS_COUNTED, StopReason, ToolCall, clean
from pytest_upskill.models.streams import json_or_text
from pytest_upskill.project.redaction import map_texts

_ENDED = ("stop", "end_turn", "stop_sequence", "completed")
_CUT = (
    *("length", "max_tokens", "max_output_tokens", "max_completion_tokens", "model_length"),
    *("model_context_window_exceeded", "incomplete"),
)
_STOP_REASONS: Mapping[str, StopReason] = {
    **dict.fromkeys(_ENDED, "end"),
    **dict.fromkeys(_CUT, "max_tokens"),
    **dict.fromkeys(("refusal", "content_filter", "safety"), "refusal"),
}
"""What the words of all formats mean: servers also use those of another format."""


def get_field(body: object, name: str) -> object:
    """Return a field of an object, None if there is no such field, or no object."""
    return body.get(name) if isinstance(body, Mapping) else None


def failed_part(body: object) -> object:
    """Return the part of a reply that has an error in place of an answer, None if there is none.

    OpenRouter reports a failure of the model in the choice; a partial answer is not used.
    """
    choices = get_field(body, "choices")
    parts = (body, *choices) if isinstance(choices, list) else (body,)
    return next((part for part in parts if get_field(part, "error")), None)


def token_count(usage: object, name: str) -> int | None:
    """Return a token count, None if it is missing or invalid."""
    value = get_field(usage, name)
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    return value if 0 <= value <= MAX_TOKENS_COUNTED else None


def stop_reason(word: object) -> StopReason:
    """Return why an answer ended, by a server's word for it."""
    return _STOP_REASONS.get(word.lower(), "other") if isinstance(word, str) else "other"


def clean_json(value: Any) -> Any:
    """Return a JSON value without lone surrogates in its texts and keys."""
    return map_texts(value, clean)


_TEXT = frozenset({"text", "output_text"})
_REASONING = ("thinking", "reasoning", "text")
"""Fields of a reasoning block that may contain its text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """The parts of a message, joined by kind."""

    text: str = ""
    reasoning: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    refusal: str = ""


def read_blocks(blocks: Iterable[Mapping[str, Any]]) -> Content:
    """Read a list of content blocks; blocks of an unknown type are ignored.

    Raises:
        AttributeError, LookupError, TypeError: The list is malformed, such as by a block without a
            type: to ignore it could lose the answer.
    """
    texts, reasoning, calls, refusals = [], [], [], []
    for block in blocks:
        kind = block["type"]
        if kind in _TEXT:
            texts.append(block["text"])
        elif kind in {"thinking", "reasoning"}:
            value = next((block[name] for name in _REASONING if block.get(name)), "")
            reasoning.append(value if isinstance(value, str) else read_blocks(value).text)
        elif kind in {"tool_use", "tool_call", "server_tool_use", "function"}:
            name = str(block.get("name", kind))
            calls.append(tool_call(name, get_field(block, "id"), get_field(block, "input")))
        elif kind == "refusal":
            refusals.append(str(block.get("refusal", "")))
    return Content(
        text="".join(texts),
        reasoning="\n\n".join(filter(None, reasoning)),
        tool_calls=tuple(calls),
        refusal="".join(refusals),
    )


def read_chat_message(message: Mapping[str, Any]) -> Content:
    """Read the message of a chat completion.

    Raises:
        AttributeError, LookupError, TypeError: The message is malformed.
    """
    content = message.get("content")
    if not isinstance(content, list):
        content = [{"type": "text", "text": content}] if content else []
    blocks = read_blocks(content)
    # llama.cpp, DeepSeek and vLLM use the first name, Ollama and OpenRouter the second.
    fields = (message.get("reasoning_content"), message.get("reasoning"))
    reasoning = next((text for text in fields if isinstance(text, str) and text), "")
    return replace(
        blocks,
        reasoning="\n\n".join(filter(None, (reasoning, blocks.reasoning))),
        tool_calls=(*blocks.tool_calls, *map(_read_call, message.get("tool_calls") or ())),
        refusal=message.get("refusal") or blocks.refusal,
    )


def tool_call(name: str, call_id: object, arguments: object) -> ToolCall:
    """Return a call of a tool; arguments that are no JSON object are kept as malformed.

    Args:
        name: Name of the tool.
        call_id: Id of the call, if the server gave it one.
        arguments: A JSON object, or its text, as in chat completions. None and an empty text
            stand for no arguments.
    """
    parsed = {} if arguments is None else arguments
    if isinstance(parsed, str):
        parsed = json_or_text(parsed) if parsed.strip() else {}
    cleaned_id = clean(call_id) if isinstance(call_id, str) else ""
    if isinstance(parsed, Mapping):
        return ToolCall(name=name, id=cleaned_id, arguments=clean_json(parsed))
    raw = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return ToolCall(name=name, id=cleaned_id, malformed=clean(raw))


def _read_call(call: object) -> ToolCall:
    function = get_field(call, "function")
    name, arguments = get_field(function, "name"), get_field(function, "arguments")
    return tool_call(name if isinstance(name, str) else "unnamed", get_field(call, "id"), arguments)
