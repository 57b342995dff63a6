"""Stable names for cases without an ``id``: made of what they say, never of where they stand."""

from __future__ import annotations

import json
import re
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any

MAX_SLUG = 40
"""Characters of an input that make a name by themselves."""

_WORD = re.compile(r"[^\W_]+")


def case_ids(cases: Sequence[Mapping[str, Any]]) -> list[str]:
    """Name every case: its ``id``, else a slug of its ``input``.

    A slug that is cut, shared or reserved gets six hexadecimal digits of a hash over the whole
    case, so that a name changes with its own case only. Cases alike in all they say share a name.

    Args:
        cases: Entries of a case file, as read from JSON.
    """
    slugs = [case.get("id") or _slug(case["input"]) for case in cases]
    times = Counter(slugs)
    taken = {slug for slug, count in times.items() if count > 1} | {"", "gate"}
    return [
        case.get("id") or _name(slug, case, unique=slug not in taken)
        for slug, case in zip(slugs, cases, strict=True)
    ]


def _slug(text: str) -> str:
    return "-".join(_WORD.findall(unicodedata.normalize("NFKC", text).lower()))


def _name(slug: str, case: Mapping[str, Any], *, unique: bool) -> str:
    if unique and len(slug) <= MAX_SLUG:
        return slug
    start = slug[: MAX_SLUG + 1].rpartition("-")[0] if len(slug) > MAX_SLUG else slug
    canonical = json.dumps(case, sort_keys=True, separators=(",", ":"))
    digits = sha256(canonical.encode()).hexdigest()[:6]
    return f"{start or slug[:MAX_SLUG] or 'case'}-{digits}"
