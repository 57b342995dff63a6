"""Replies of Gemini's own API, which Gemini's program speaks.

Source: https://ai.google.dev/api/generate-content.
"""

from collections.abc import Mapping
from typing import Any

from pytest_upskill.models.completion import Completion, clean
from pytest_upskill.models.content import stop_reason, token_count, tool_call

_REFUSALS = frozenset({"BLOCKLIST", "PROHIBITED_CONTENT", "RECITATION", "SAFETY", "SPII"})


def read_generated(body: Mapping[str, Any]) -> Completion:
    """Return the completion in a reply.

    Raises:
        AttributeError, LookupError, TypeError: The reply is malformed.
    """
    (candidate, *_) = body.get("candidates") or [{"finishReason": "SAFETY"}]
    parts = (candidate.get("content") or {}).get("parts") or []
    texts = [(part["text"], bool(part.get("thought"))) for part in parts if "text" in part]
    calls = [part["functionCall"] for part in parts if "functionCall" in part]
    usage, reason = body.get("usageMetadata"), candidate.get("finishReason")
    counts = (token_count(usage, name) for name in ("candidatesTokenCount", "thoughtsTokenCount"))
    written = [count for count in counts if count is not None]
    return Completion(
        text=clean("".join(text for text, thought in texts if not thought)),
        reasoning=clean("".join(text for text, thought in texts if thought)),
        # It gives calls no ids: results are found by name and order.
        tool_calls=tuple(tool_call(call["name"], call["name"], call.get("args")) for call in calls),
        input_tokens=token_count(usage, "promptTokenCount"),
        output_tokens=sum(written) if written else None,
        cache_read_tokens=token_count(usage, "cachedContentTokenCount") or 0,
        stop_reason="refusal" if reason in _REFUSALS else stop_reason(reason),
    )
