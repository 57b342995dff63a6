"""What hosts say when they refuse a request, and what it means."""

from __future__ import annotations

import re

_CURES = (
    (
        re.compile(
            r"context.?(length|size|window)|prompt is too long|too many (input )?tokens"
            r"|input (is )?too long|maximum context",
            re.IGNORECASE,
        ),
        "lower --upskill-max-tokens, shorten skill or case, or serve the model with more context",
    ),
    (
        re.compile(
            r"(?<!unsupported parameter: ')max_(completion_|output_|new_)?tokens(?!' is not supp)"
            r"|maximum output|output limit",
            re.IGNORECASE,
        ),
        "set --upskill-max-tokens to what the model allows",
    ),
)
"""What hosts say of a request that they refuse, and the option that changes it."""

FILTERED = re.compile(
    r"content[_ ](filter|management policy|policy[_ ]violation)|responsible ?ai", re.IGNORECASE
)
"""A content filter refused the question or the answer."""

LOADING = re.compile(r"loading|starting up|warming up", re.IGNORECASE)
"""The model is not in memory yet."""


def cure(said: str) -> str:
    """Return what changes a request that a host calls bad; nothing where that is not known."""
    return next((cure for words, cure in _CURES if words.search(said)), "")
