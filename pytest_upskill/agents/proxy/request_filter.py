"""The part of an agent's request that may reach the host: an allow-list for each wire format.

Nothing passes that makes the host fetch a URL, read a stored file or conversation, run tools of its
own or of an MCP server, bill another tier or another model, or answer more than once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from pytest_upskill.wire.stream import AgentFormat

_Body = Mapping[str, Any]


class RefusedBody(ValueError):  # noqa: N818  a request of an agent, not an error of this program
    """A request that cannot be passed on; the message names the part that is not allowed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rules:
    fields: frozenset[str]
    """Fields that are passed on as they are."""
    limit: str
    """The field of the output limit."""
    items: str
    """The field of the conversation."""
    parts: frozenset[str]
    """Types of the parts of a conversation."""
    tools: frozenset[str]
    """Types of tools that the agent runs itself."""
    tool_fields: frozenset[str]


_RULES: Mapping[AgentFormat, _Rules] = MappingProxyType(
    {
        "messages": _Rules(
            fields=frozenset(
                {
                    "messages",
                    "output_config",
                    "stop_sequences",
                    "stream",
                    "system",
                    "temperature",
                    "thinking",
                    "tool_choice",
                    "top_k",
                    "top_p",
                }
            ),
            limit="max_tokens",
            items="messages",
            parts=frozenset(
                {
                    "text",
                    "image",
                    "document",
                    "tool_use",
                    "tool_result",
                    "thinking",
                    "redacted_thinking",
                }
            ),
            tools=frozenset({"", "custom"}),
            tool_fields=frozenset(
                {
                    "name",
                    "description",
                    "input_schema",
                    "type",
                    "cache_control",
                    "strict",
                    "eager_input_streaming",
                }
            ),
        ),
        "responses": _Rules(
            fields=frozenset(
                {
                    "input",
                    "instructions",
                    "parallel_tool_calls",
                    "prompt_cache_key",
                    "reasoning",
                    "stream",
                    "temperature",
                    "text",
                    "tool_choice",
                    "top_p",
                    "truncation",
                }
            ),
            limit="max_output_tokens",
            items="input",
            parts=frozenset(
                {
                    "message",
                    "text",
                    "input_text",
                    "output_text",
                    "summary_text",
                    "reasoning_text",
                    "refusal",
                    "input_image",
                    "function_call",
                    "function_call_output",
                    "custom_tool_call",
                    "custom_tool_call_output",
                    "local_shell_call",
                    "local_shell_call_output",
                    "reasoning",
                }
            ),
            tools=frozenset({"function", "custom", "local_shell"}),
            tool_fields=frozenset(
                {"name", "description", "parameters", "type", "strict", "format"}
            ),
        ),
    }
)


_INSTRUCTIONS = ("system", "instructions")
"""Fields that hold parts as a conversation does, where they are no text."""


def filter_request(
    wire: AgentFormat, body: _Body, *, model: str, max_tokens: int
) -> dict[str, Any]:
    """Rebuild a request from what is allowed, and leave out everything else.

    Args:
        wire: Its format.
        body: The request as the agent sent it.
        model: The model to pin.
        max_tokens: Maximum number of tokens to generate.

    Raises:
        RefusedBody: The conversation holds what cannot be left out without changing its meaning.
    """
    rules = _RULES[wire]
    try:
        for field in (rules.items, *_INSTRUCTIONS):
            _refuse_parts(body.get(field), rules)
    except RecursionError:
        raise RefusedBody(f"{rules.items}: nested too deeply") from None
    kept = {name: value for name, value in body.items() if name in rules.fields}
    requested = body.get(rules.limit)
    most = (
        min(requested, max_tokens) if isinstance(requested, int) and requested > 0 else max_tokens
    )
    kept |= {"model": model, rules.limit: most}
    if tools := _tools(body.get("tools"), rules):
        kept["tools"] = tools
    else:
        kept.pop("tool_choice", None)
    if "thinking" in kept:
        _fit_thinking(kept)
    if wire == "responses":
        kept |= {"store": False, "include": ["reasoning.encrypted_content"]}
    return kept


def _tools(tools: object, rules: _Rules) -> list[dict[str, Any]]:
    """Return the tools that the agent runs itself."""
    return [
        {key: part for key, part in tool.items() if key in rules.tool_fields}
        for tool in (tools if isinstance(tools, list) else ())
        if isinstance(tool, Mapping) and str(tool.get("type") or "") in rules.tools
    ]


def _refuse_parts(value: object, rules: _Rules) -> None:
    """Raise RefusedBody for a part of a conversation that is not allowed."""
    for item in value if isinstance(value, list) else ():
        # OpenAI takes an item with nothing but an id for a reference to a stored one.
        if isinstance(item, Mapping) and not {"type", "role"} & item.keys():
            raise RefusedBody(f"{rules.items}: an item without a type or a role is not allowed")
    for part in _parts(value):
        kind = str(part.get("type", "part"))
        if "type" in part and kind not in rules.parts:
            raise RefusedBody(f"{rules.items}: {kind[:60]} is not allowed")
        for source in _sources(part):
            if not source.startswith("data:"):
                raise RefusedBody(f"{rules.items}: {kind} that is not in the request itself")


def _parts(value: object) -> Iterator[Mapping[str, Any]]:
    """Yield every part of a conversation, but nothing of tools' arguments.

    Servers may tell the type of a part that names none by its fields.
    """
    if isinstance(value, list):
        for each in value:
            yield from _parts(each)
    elif isinstance(value, Mapping):
        yield value
        for key in ("content", "output", "summary"):
            yield from _parts(value.get(key))
        # A document of Anthropic's may have parts of its own, images among them.
        source = value.get("source")
        yield from _parts(source.get("content") if isinstance(source, Mapping) else None)


def _sources(part: Mapping[str, Any]) -> Iterator[str]:
    """Yield where the host would get the content of a part from."""
    source = part.get("source")
    if isinstance(source, Mapping) and source.get("type") not in {"base64", "text", "content"}:
        yield str(source.get("url") or source.get("type"))
    if part.get("image_url") is not None:
        yield str(part["image_url"])
    if part.get("file_id"):
        yield "file_id"


def _fit_thinking(body: dict[str, Any]) -> None:
    """Keep the tokens for thinking below the clamped output limit, as the API demands."""
    thinking = body["thinking"]
    budget = thinking.get("budget_tokens") if isinstance(thinking, Mapping) else None
    if not isinstance(budget, int) or budget < body["max_tokens"]:
        return
    half = body["max_tokens"] // 2
    if half >= _LEAST_THINKING:
        body["thinking"] = {**thinking, "budget_tokens": half}
    else:
        del body["thinking"]


_LEAST_THINKING = 1024
