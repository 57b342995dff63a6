"""The format of OpenAI's Chat Completions API and compatible servers: bodies, and replies.

Source: https://platform.openai.com/docs/api-reference/chat.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Literal

from pytest_upskill.completion import Completion, Request, StopReason, Turn, clean
from pytest_upskill.model import Model
from pytest_upskill.wire.content import of_message
from pytest_upskill.wire.fields import InsteadOfAnswer, clean_json, count, part

_STOP: Mapping[str | None, StopReason] = MappingProxyType(
    {"stop": "end", "length": "max_tokens", "content_filter": "refusal"}
)
_NO_SYSTEM = re.compile(
    r"system (role|message|prompt|instruction)s?\b.*\b(not|un)[ -]?(supported|allowed|enabled)"
    r"|(does not|doesn't|not) support.*\bsystem\b|only user and assistant roles"
    r"|developer instruction is not enabled",
    re.IGNORECASE,
)
_NO_MAX_TOKENS = re.compile(
    r"\A(?=.*max_completion_tokens)(?=.*(instead|unsupported|not (supported|compatible)))",
    re.IGNORECASE | re.DOTALL,
)
_NO_COMPLETION_LIMIT = re.compile(
    r"(un(supported|recognized|known|expected)|extra|not (permitted|allowed|supported)).*"
    r"max_completion_tokens|max_completion_tokens.*(unsupported|not (permitted|allowed|supported)"
    r"|extra)",
    re.IGNORECASE,
)
_MOST_READ = 4000
"""Characters of a refusal that are read."""

LimitName = Literal["max_tokens", "max_completion_tokens"]
"""OpenAI's reasoning models refuse the first; local servers ignore the second."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """Differences between the models of one format."""

    limit: LimitName
    """Name of the field with the maximum of output tokens."""
    system_apart: bool = True
    """Whether there is a system role; otherwise the system prompt is put before the question."""

    @classmethod
    def of(cls, model: Model) -> Dialect:
        """Return the dialect to use before the first request to a model."""
        openai = model.vendor is not None and model.vendor.prefix == "openai"
        new = openai or model.always_reasons
        return cls("max_completion_tokens" if new else "max_tokens")

    def after(self, refusal: str) -> Dialect:
        """Return the dialect that the message of a host asks for, the same one if it asks for none.

        Azure, gateways and others say ``Use 'max_completion_tokens' instead`` of deployments whose
        names do not tell the model. Some chat templates have no system role (Gemma's, older
        Mistral's). All arms get the same.
        """
        refusal = refusal[:_MOST_READ]
        if self.system_apart and _NO_SYSTEM.search(refusal):
            return replace(self, system_apart=False)
        if self.limit == "max_tokens" and _NO_MAX_TOKENS.search(refusal):
            return replace(self, limit="max_completion_tokens")
        if self.limit == "max_completion_tokens" and _NO_COMPLETION_LIMIT.search(refusal):
            return replace(self, limit="max_tokens")
        return self


def chat_body(request: Request, dialect: Dialect | None = None) -> dict[str, Any]:
    """Return the JSON body of a request.

    Args:
        request: The request.
        dialect: How the model wants it; None for what its name tells.
    """
    dialect = dialect or Dialect.of(request.model)
    messages = _messages(request, system_apart=dialect.system_apart)
    for turn in request.turns:
        messages += _turn(turn)
    body: dict[str, Any] = {"model": request.model.name, "messages": messages}
    body[dialect.limit] = request.max_tokens
    body |= _parameters(request)
    if request.tools:
        body["tools"] = [
            {
                "type": "function",
                "function": {
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": tool.schema,
                },
            }
            for tool in request.tools
        ]
    return body


def read_chat(body: Mapping[str, Any]) -> Completion:
    """Return the completion in a reply, without what only HTTP headers contain.

    Raises:
        InsteadOfAnswer: The reply is an error.
        AttributeError, LookupError, TypeError: The reply is malformed.
    """
    choice, usage = body["choices"][0], body.get("usage")
    # OpenRouter reports here that the model failed; a partial answer is not used.
    if choice.get("error"):
        raise InsteadOfAnswer(choice)
    message = _with_call_ids(choice["message"])
    content = of_message(message)
    details = part(usage, "prompt_tokens_details")
    return Completion(
        text=clean(content.text or content.refusal),
        reasoning=clean(content.reasoning),
        tool_calls=content.tool_calls,
        assistant_blocks=(clean_json(_without_nulls(message)),),
        input_tokens=count(usage, "prompt_tokens"),
        output_tokens=_output_tokens(usage),
        cache_read_tokens=count(details, "cached_tokens") or 0,
        cache_write_tokens=count(details, "cache_write_tokens") or 0,
        stop_reason="refusal"
        if content.refusal
        else _STOP.get(choice.get("finish_reason"), "other"),
    )


def _output_tokens(usage: object) -> int | None:
    """Return all generated tokens, None if the server does not count them.

    Gemini's endpoint and some gateways count reasoning in ``total_tokens`` alone. Totals that are
    smaller than the sum of their parts, such as 0, are ignored.
    """
    output = count(usage, "completion_tokens")
    prompt, total = count(usage, "prompt_tokens"), count(usage, "total_tokens")
    if output is None or prompt is None or total is None:
        return output
    return max(output, total - prompt)


def _parameters(request: Request) -> dict[str, Any]:
    """Return the fields of the parameters, under the names of the host."""
    given, vendor = request.model.parameters, request.model.vendor
    fields: dict[str, Any] = {"temperature": given.temperature, "top_p": given.top_p}
    fields[vendor.seed if vendor else "seed"] = request.seed
    fields["stop"] = list(given.stop) or None
    if given.effort and vendor and vendor.nested_effort:
        fields["reasoning"] = {"effort": given.effort}
    else:
        fields["reasoning_effort"] = given.effort
    return {name: value for name, value in fields.items() if value is not None} | given.fields


def _messages(request: Request, *, system_apart: bool) -> list[dict[str, Any]]:
    system, user = clean(request.system), clean(request.user)
    if system and not system_apart:
        system, user = "", "\n\n".join(filter(None, (system, user)))
    first = [{"role": "system", "content": system}] if system else []
    return [*first, {"role": "user", "content": user}]


def _turn(turn: Turn) -> list[dict[str, Any]]:
    results = [
        {"role": "tool", "tool_call_id": result.call_id, "content": clean(result.text)}
        for result in turn.results
    ]
    return [*({"role": "assistant", **block} for block in turn.assistant_blocks), *results]


def _with_call_ids(message: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a message with an id for each tool call, which some servers leave out."""
    calls = message.get("tool_calls")
    if not isinstance(calls, list) or all(part(call, "id") for call in calls):
        return message
    named = [
        {**call, "id": part(call, "id") or f"call_{number}"} if isinstance(call, Mapping) else call
        for number, call in enumerate(calls, 1)
    ]
    return {**message, "tool_calls": named}


def _without_nulls(message: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a message without its empty fields, which some servers send but do not accept."""
    return {
        name: value
        for name, value in message.items()
        if name == "content" or value not in (None, [])
    }
