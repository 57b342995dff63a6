"""Fields of replies, which may be missing or have another type than the API documents."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from pytest_upskill.models.completion import MAX_TOKENS_COUNTED, StopReason, clean

_STOP_REASONS: Mapping[str, StopReason] = MappingProxyType(
    {
        "stop": "end",
        "end_turn": "end",
        "stop_sequence": "end",
        "completed": "end",
        "length": "max_tokens",
        "max_tokens": "max_tokens",
        "max_output_tokens": "max_tokens",
        "max_completion_tokens": "max_tokens",
        "model_length": "max_tokens",
        "model_context_window_exceeded": "max_tokens",
        "incomplete": "max_tokens",
        "refusal": "refusal",
        "content_filter": "refusal",
        "safety": "refusal",
    }
)
"""What the words of all formats mean: servers also use those of another format."""


class ErrorReply(LookupError):  # noqa: N818  describes a reply, not a failure here
    """A reply with HTTP status 200 that contains an error in place of an answer.

    Attributes:
        body: The part of the reply with the error.
    """

    def __init__(self, body: Mapping[str, Any]) -> None:
        super().__init__()
        self.body = body


def get_field(body: object, name: str) -> object:
    """Return a field of an object, None if there is no such field, or no object."""
    return body.get(name) if isinstance(body, Mapping) else None


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
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, Mapping):
        return {clean(str(key)): clean_json(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [clean_json(item) for item in value]
    return value
