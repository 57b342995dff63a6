"""The part of an agent's request that may reach the host: an allow-list for each wire format.

Nothing passes that makes the host fetch a URL, read a stored file or conversation, run its tools or
those of an MCP server, bill another tier or another model, or answer more than once.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from pytest_upskill.models.streams import AgentFormat

_Body = Mapping[str, Any]


class RefusedBody(ValueError):  # noqa: N818  a request of an agent, not an error of this program
    """A request that cannot be passed on; the message names the part that is not allowed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rules:
    fields: frozenset[str]
    """Fields that are passed on as they are."""
    limit_field: str
    """The field of the output limit."""
    conversation_field: str
    part_types: frozenset[str]
    """Types of the parts of a conversation that are allowed."""
    tool_types: frozenset[str]
    """Types of tools that the agent runs itself."""
    tool_fields: frozenset[str]
    """Fields of a tool that are passed on."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_RULES: Mapping[AgentFormat, _Rules] = {
    "messages": _Rules(
        fields=_words(
            "messages output_config stop_sequences stream system temperature "
            "thinking tool_choice top_k top_p"
        ),
        limit_field="max_tokens",
        conversation_field="messages",
        part_types=_words("text image document tool_use tool_result thinking redacted_thinking"),
        tool_types=frozenset({"", "custom"}),
        tool_fields=_words(
            "name description input_schema type cache_control strict eager_input_streaming"
        ),
    ),
    "responses": _Rules(
        fields=_words(
            "input instructions parallel_tool_calls prompt_cache_key reasoning "
            "stream temperature text tool_choice top_p truncation"
        ),
        limit_field="max_output_tokens",
        conversation_field="input",
        part_types=_words(
            "message text input_text output_text summary_text reasoning_text "
            "refusal input_image function_call function_call_output "
            "custom_tool_call custom_tool_call_output local_shell_call "
            "local_shell_call_output reasoning"
        ),
        tool_types=_words("function custom local_shell"),
        tool_fields=_words("name description parameters type strict format"),
    ),
    "generateContent": _Rules(
        fields=_words("contents systemInstruction toolConfig"),
        limit_field="maxOutputTokens",
        conversation_field="contents",
        part_types=_words("functionCall functionResponse inlineData text thought thoughtSignature"),
        tool_types=frozenset(),
        tool_fields=_words("functionDeclarations"),
    ),
}
_CONTENT_FIELDS = _words("id name response role")
"""Fields of a message of Gemini's, and of the result of a tool, besides ``parts``."""
_GENERATION_FIELDS = _words(
    "frequencyPenalty presencePenalty responseJsonSchema responseMimeType responseSchema seed "
    "stopSequences temperature thinkingConfig topK topP"
)
"""Fields of Gemini's ``generationConfig``; ``candidateCount`` would bill several answers."""


_INSTRUCTIONS = ("system", "instructions", "systemInstruction")
"""Fields that hold a text, or parts like those of a conversation."""
_PARTS_FIELDS = frozenset({"content", "output", "summary"})
"""Fields of a part that may hold parts."""
_INSIDE = frozenset({"base64", "text", "content"})
"""Types of a source that is in the request itself."""
_SHORT_CACHE = {"type": "ephemeral"}
_NO_DOCUMENT = {
    "type": "text",
    "text": "[This document is left out, because its tokens cannot be counted: read its text.]",
}
"""What stands for a PDF, of which a page has thousands of tokens, however few bytes."""
_MAX_IMAGES = 100
_MAX_IMAGE_TOKENS: Mapping[AgentFormat, int] = {
    "messages": 5_000,
    "responses": 50_000,
    "generateContent": 5_000,
}
"""Upper bound of the tokens of an image of any size, by rules that the vendors publish: 4,784 at
Anthropic; at OpenAI 48,169, which gpt-4o-mini counts for eight tiles; at Google 16 tiles of 258."""
_IMAGES = (b'"type": "image"', b'"image_url": ', b'"inlineData": ')
"""What the JSON of every image contains, and no text, whose quotes have backslashes."""


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
        RefusedBody: The conversation contains a part that is not allowed, and whose omission would
            change its meaning.
    """
    rules = _RULES[wire]
    allowed = {name: value for name, value in body.items() if name in rules.fields}
    rebuild = _with_allowed_parts if wire == "generateContent" else partial(_rebuilt, rules=rules)
    try:
        for field in {rules.conversation_field, *_INSTRUCTIONS} & allowed.keys():
            allowed[field] = rebuild(allowed[field])
    except RecursionError:
        raise RefusedBody(f"{rules.conversation_field}: nested too deeply") from None
    if wire == "generateContent":
        return allowed | _generation(body, max_tokens)
    allowed |= {"model": model, rules.limit_field: _output_limit(body, rules, max_tokens)}
    # Those that the agent runs itself.
    own = [tool for tool in _tools(body) if str(tool.get("type") or "") in rules.tool_types]
    if own:
        allowed["tools"] = [
            _with_short_cache({name: tool[name] for name in tool if name in rules.tool_fields})
            for tool in own
        ]
    else:
        allowed.pop("tool_choice", None)
    thinking = allowed.get("thinking")
    budget = thinking.get("budget_tokens") if isinstance(thinking, Mapping) else None
    if isinstance(budget, int) and budget >= allowed[rules.limit_field]:
        del allowed["thinking"]  # the API would refuse the request
    if wire == "responses":
        allowed |= {"store": False, "include": ["reasoning.encrypted_content"]}
    return allowed


def left_out_of(wire: AgentFormat, body: _Body, allowed: _Body) -> Iterator[str]:
    """Yield the names of the fields at the top and of the tools that `filter_request` left out."""
    yield from body.keys() - allowed.keys()
    rules = _RULES[wire]
    for tool in _tools(body):
        if wire == "generateContent":
            yield from (f"tool {name}" for name in tool.keys() - rules.tool_fields)
        elif str(tool.get("type") or "") not in rules.tool_types:
            yield f"tool {tool.get('name') or tool.get('type')}"


def _generation(body: _Body, max_tokens: int) -> dict[str, Any]:
    """Return how Gemini is to answer, and the tools; the model is part of the URL."""
    rules = _RULES["generateContent"]
    given = body.get("generationConfig")
    given = given if isinstance(given, Mapping) else {}
    config = {name: value for name, value in given.items() if name in _GENERATION_FIELDS}
    config[rules.limit_field] = _output_limit(given, rules, max_tokens)
    own = [
        {name: tool[name] for name in rules.tool_fields}
        for tool in _tools(body)
        if rules.tool_fields <= tool.keys()
    ]
    return {"generationConfig": config, **({"tools": own} if own else {})}


def _output_limit(given: _Body, rules: _Rules, max_tokens: int) -> int:
    """Return the output limit that was asked for, if it is not above the maximum."""
    asked = given.get(rules.limit_field)
    return min(asked, max_tokens) if isinstance(asked, int) and asked > 0 else max_tokens


def _tools(body: _Body) -> list[_Body]:
    tools = body.get("tools")
    return [each for each in tools if isinstance(each, Mapping)] if isinstance(tools, list) else []


def _with_allowed_parts(content: Any) -> Any:
    """Return contents of Gemini's with their parts; raise RefusedBody for one with a file's URL."""
    if isinstance(content, list):
        return [_with_allowed_parts(each) for each in content]
    if not isinstance(content, Mapping):
        raise RefusedBody(f"contents: {type(content).__name__} is not allowed")
    kept = {name: content[name] for name in _CONTENT_FIELDS & content.keys()}
    parts = content.get("parts", [])
    if not isinstance(parts, list):
        raise RefusedBody(f"contents: parts as {type(parts).__name__} is not allowed")
    return {**kept, "parts": [_allowed_part(part) for part in parts]} if parts else kept


def _allowed_part(part: Any) -> dict[str, Any]:
    for name in part if isinstance(part, Mapping) else (type(part).__name__,):
        if name not in _RULES["generateContent"].part_types:
            raise RefusedBody(f"contents: {name[:60]} is not allowed")
    data = part.get("inlineData", {"mimeType": "image/"})
    kind = data.get("mimeType") if isinstance(data, Mapping) else None
    if not str(kind).startswith("image/"):
        return {"text": _NO_DOCUMENT["text"]}
    response = part.get("functionResponse")
    # A tool may return a file as well.
    return {**part, "functionResponse": _with_allowed_parts(response)} if response else dict(part)


def max_prompt_tokens(wire: AgentFormat, content: bytes) -> int:
    """Return an upper bound on the tokens of a request: its bytes, and more for each image.

    Args:
        wire: Its format.
        content: The JSON of the request that `filter_request` returns.

    Raises:
        RefusedBody: It has more images than any vendor accepts.
    """
    images = sum(map(content.count, _IMAGES))
    if images > _MAX_IMAGES:
        raise RefusedBody(f"more than {_MAX_IMAGES} images")
    return len(content) + images * _MAX_IMAGE_TOKENS[wire]


def _rebuilt(value: Any, rules: _Rules) -> Any:
    """Return a conversation with what is allowed of its parts, except for the arguments of calls.

    Raises:
        RefusedBody: A part is not allowed.
    """
    if isinstance(value, list):
        for item in value:
            # OpenAI takes an item with only an id for a reference to a stored one.
            if isinstance(item, Mapping) and not {"type", "role"} & item.keys():
                raise RefusedBody(f"{rules.conversation_field}: an item without a type or a role")
        return [_rebuilt(item, rules) for item in value]
    if not isinstance(value, Mapping):
        return value
    kind = _allowed_kind(value, rules)
    source = value.get("source")
    if kind == "document" and isinstance(source, Mapping) and source.get("type") == "base64":
        return _NO_DOCUMENT
    part = {
        name: _rebuilt(field, rules) if name in _PARTS_FIELDS else field
        for name, field in value.items()
    }
    # A document in Anthropic's format may itself contain parts, such as images.
    if isinstance(source, Mapping) and "content" in source:
        part["source"] = {**source, "content": _rebuilt(source["content"], rules)}
    return _with_short_cache(part)


def _allowed_kind(part: Mapping[str, Any], rules: _Rules) -> str:
    """Return the type of a part of a conversation.

    Raises:
        RefusedBody: The part is not allowed, or its content is not in the request.
    """
    kind = str(part.get("type", "part"))
    where = f"{rules.conversation_field}: {kind[:60]}"
    if "type" in part and kind not in rules.part_types:
        raise RefusedBody(f"{where} is not allowed")
    # Servers may infer the type from the fields.
    if "source" in part and kind not in {"image", "document"}:
        raise RefusedBody(f"{where} with a source is not allowed")
    source = part.get("source", {"type": "text"})
    is_inside = isinstance(source, Mapping) and str(source.get("type")) in _INSIDE
    urls = (part[name] for name in ("image_url", "file_url") if part.get(name) is not None)
    if part.get("file_id") or not is_inside or any(not str(u).startswith("data:") for u in urls):
        raise RefusedBody(f"{where} that is not in the request itself")
    return kind


def _with_short_cache(value: dict[str, Any]) -> dict[str, Any]:
    """Return a part or a tool with a cache of the usual lifetime, as a longer one costs more."""
    return {**value, "cache_control": _SHORT_CACHE} if value.get("cache_control") else value
