"""A teacher's reply: its text, the JSON in it, and why one is refused."""

from __future__ import annotations

import json
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from pytest_upskill.checks.blocks import blocks
from pytest_upskill.models import Completion

MAX_TOKENS = 8192
"""Maximum output tokens of a teacher's reply."""

T = TypeVar("T")


class Refused(Exception):  # noqa: N818  a decision, not an error of this program
    """A teacher's proposal is refused; the message, one line, is for the teacher and the user."""


def complete_text(completion: Completion) -> str:
    """Return the text of a complete reply.

    Raises:
        Refused: The reply is empty, was cut off, or is a refusal.
    """
    if completion.stop_reason == "max_tokens":
        raise Refused(f"the reply was cut at its limit of {MAX_TOKENS:,} tokens")
    if completion.stop_reason == "refusal":
        raise Refused("the teacher refused to reply")
    if not completion.text.strip():
        raise Refused("the reply is empty")
    return completion.text


def read_json_reply(text: str) -> Any:
    """Read the JSON of a reply: its last fenced block that is JSON, else from brace to brace.

    Raises:
        Refused: There is none.
    """
    fenced = [block.code for block in blocks(text)]
    bare = text[text.find("{") : text.rfind("}") + 1]
    for candidate in (*reversed(fenced), text, bare):
        try:
            value = json.loads(candidate)
            # JSON can escape half of a surrogate pair, which cannot be written into a file.
            json.dumps(value, ensure_ascii=False).encode()
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict | list):
            return value
    raise Refused("the reply has no JSON")


def validate_as(kind: TypeAdapter[T], value: object, what: str = "") -> T:
    """Return a part of a reply as a value of a type.

    Args:
        kind: The type to validate as.
        value: The parsed JSON.
        what: Its name in the message.

    Raises:
        Refused: It is malformed.
    """
    try:
        return kind.validate_python(value)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"]))
        parts = (f"malformed {what}".rstrip(), where, first["msg"])
        raise Refused(": ".join(filter(None, parts))) from None
