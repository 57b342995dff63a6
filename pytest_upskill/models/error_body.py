"""Errors of hosts with any format: message, code and retry time in their bodies and headers."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime

from pytest_upskill.models.error_hints import FILTERED
from pytest_upskill.project.redaction import without_userinfo

_MAX_CHARS = 200
_PAGE = re.compile(r"\s*<(!doctype )?html", re.IGNORECASE)
_TITLE = re.compile("<title>([^<]*)", re.IGNORECASE)


def redirect_target(location: str) -> str:
    """Return the target of a redirect, without parts that may contain a key."""
    return re.split(r"[?#]", without_userinfo(location), maxsplit=1)[0] or "nowhere"


def error_message(body: object) -> str:
    """Return the message in an error body of any known shape, on one line, shortened."""
    while isinstance(body, Mapping):
        body = body.get("error") or body.get("message") or body.get("detail")
    text = str(body or "")
    if _PAGE.match(text):
        title = _TITLE.search(text)
        text = f"a web page ({title[1].strip()})" if title else "a web page"
    text = one_line(text)
    return text if len(text) <= _MAX_CHARS else text[:_MAX_CHARS] + "..."


def code_of(body: object) -> object:
    """Return OpenAI's error code from a body, None if there is none.

    Args:
        body: The body, or its ``error`` object, which is what the SDK returns.
    """
    inner = body.get("error", body) if isinstance(body, Mapping) else None
    return inner.get("code") if isinstance(inner, Mapping) else None


def is_filtered(body: object) -> bool:
    """Return whether an error code or message is that of a content filter."""
    return bool(FILTERED.search(f"{code_of(body)} {error_message(body)}"))


def http_status_of(code: object) -> int | None:
    """Return the HTTP status that an error code stands for, None if it stands for none."""
    if isinstance(code, bool) or not re.fullmatch("[45][0-9]{2}", str(code)):
        return None
    return int(str(code))


def one_line(text: str) -> str:
    """Return a text on one line, with printable characters only."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds to wait, from ``retry-after-ms`` or RFC 9110's ``Retry-After``."""
    for name, unit in (("retry-after-ms", 1000), ("retry-after", 1)):
        try:
            seconds = float(headers.get(name, "")) / unit
        except ValueError:
            continue
        return seconds if 0 < seconds < float("inf") else None
    try:
        at = parsedate_to_datetime(headers.get("retry-after", "")).timestamp()
    except (ValueError, OverflowError):
        return None
    return max(0.0, at - time.time())
