"""Classification of the error messages of hosts that refuse a request."""

from __future__ import annotations

import re

_CURES = (
    (
        re.compile(
            r"context.?(length|size|window)|prompt is too long|too many (input )?tokens"
            r"|input (is )?too long|maximum context",
            re.IGNORECASE,
        ),
        (
            "lower --upskill-max-tokens, shorten the skill or the case, or serve the model with a "
            "larger context"
        ),
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
"""Patterns of error messages, each with the option that fixes the request."""

FILTERED = re.compile(
    r"content[_ ](filter|management policy|policy[_ ]violation)|responsible ?ai", re.IGNORECASE
)
"""Messages of a content filter that refused the question or the answer."""

LOADING = re.compile(r"loading|starting up|warming up", re.IGNORECASE)
"""Messages of a host that is still loading the model."""


def cure(said: str) -> str:
    """Return how to fix a request that a host refuses with the message ``said``, "" if unknown."""
    return next((cure for words, cure in _CURES if words.search(said)), "")
