"""Fields of replies, which may be missing or have another type than the API documents."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pytest_upskill.completion import MAX_TOKENS_COUNTED, clean


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


def clean_json(value: Any) -> Any:
    """Return a JSON value without lone surrogates in its texts and keys."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, Mapping):
        return {clean(str(key)): clean_json(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [clean_json(item) for item in value]
    return value
