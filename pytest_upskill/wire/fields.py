"""Fields of replies, which may be missing or of another type than the API says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pytest_upskill.completion import MAX_TOKENS_COUNTED, clean


class InsteadOfAnswer(LookupError):  # noqa: N818  describes a reply, not a failure here
    """An error that a reply contains in place of an answer.

    Attributes:
        body: The part of the reply with the error.
    """

    def __init__(self, body: Mapping[str, Any]) -> None:
        super().__init__()
        self.body = body


def part(body: object, name: str) -> object:
    """Return an optional field of an optional object, None if either is missing."""
    return body.get(name) if isinstance(body, Mapping) else None


def count(usage: object, name: str) -> int | None:
    """Return a token count, None if it is missing or invalid."""
    value = part(usage, name)
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    return value if 0 <= value <= MAX_TOKENS_COUNTED else None


def clean_json(value: Any) -> Any:
    """Return a JSON value without lone surrogates in its texts and keys."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, Mapping):
        return {clean(str(key)): clean_json(each) for key, each in value.items()}
    return [clean_json(each) for each in value] if isinstance(value, (list, tuple)) else value
