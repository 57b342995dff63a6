"""The JSON in a teacher's reply."""

from __future__ import annotations

import json
from typing import Any

from pytest_upskill.checks.blocks import blocks
from pytest_upskill.completion import Completion

MAX_TOKENS = 8192
"""Maximum output tokens of a teacher's reply."""


class BadReply(Exception):  # noqa: N818  a reason to refuse, not an error of this program
    """A reply that cannot be used; the message says why, for the teacher and for the user."""


def whole_text(completion: Completion) -> str:
    """Return what a teacher said.

    Raises:
        BadReply: It said nothing, refused, or was cut off.
    """
    if completion.stop_reason == "max_tokens":
        raise BadReply(f"the reply was cut at its limit of {MAX_TOKENS:,} tokens")
    if completion.stop_reason == "refusal":
        raise BadReply("the teacher refused to reply")
    if not completion.text.strip():
        raise BadReply("the reply is empty")
    return completion.text


def json_of(text: str) -> Any:
    """Read the JSON of a reply: its last fenced block that is JSON, else all from brace to brace.

    Raises:
        BadReply: There is none.
    """
    fenced = [block.code for block in blocks(text)]
    bare = text[text.find("{") : text.rfind("}") + 1]
    for candidate in (*reversed(fenced), text, bare):
        try:
            value = json.loads(candidate)
            # JSON can spell half of a character, which no file can hold.
            json.dumps(value, ensure_ascii=False).encode()
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict | list):
            return value
    raise BadReply("the reply has no JSON")
