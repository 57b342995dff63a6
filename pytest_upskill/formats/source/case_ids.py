"""Stable names for cases without an ``id``: made of what they say, never of where they stand."""

from __future__ import annotations

import json
import re
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from hashlib import sha256
from itertools import chain, count
from typing import Any

from pytest_upskill.sanitize.safe_text import safe_line

MAX_SLUG = 40
"""Characters of an input that make a name by themselves."""

MAX_ID = 100
"""Characters of a case's id."""

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


def lenient_ids(cases: Sequence[tuple[str, str, Mapping[str, Any]]]) -> list[str]:
    """Name every case, whatever its file calls it.

    A given name that pytest cannot use is made a slug; one that is shared gets the hash, and of
    cases alike in all they say, all but the first a number.

    Args:
        cases: Given name (or an empty text), question and whole entry of each.
    """
    names = [_usable(given) or _slug(given) or _slug(question) for given, question, _ in cases]
    times = Counter(names)
    unique = [times[name] == 1 and name not in {"", "gate"} for name in names]
    found = [
        name if alone and name == given else _name(name, entry, unique=alone)
        for name, alone, (given, _, entry) in zip(names, unique, cases, strict=True)
    ]
    taken: dict[str, None] = {}
    for name in found:
        numbered = (f"{name}-{number}" for number in count(2))
        taken[next(free for free in chain([name], numbered) if free not in taken)] = None
    return list(taken)


def _usable(given: str) -> str:
    good = given.isprintable() and given == given.strip() and len(given) <= MAX_ID
    # pytest writes "[model-arm]" behind it, and "##[" is a command to a CI runner.
    good = good and safe_line(f"{given}[") == f"{given}["
    return given if good and not any(part in given for part in ("::", "[", "]")) else ""


def _slug(text: str) -> str:
    return "-".join(_WORD.findall(unicodedata.normalize("NFKC", text).lower()))


def _name(slug: str, case: Mapping[str, Any], *, unique: bool) -> str:
    if unique and len(slug) <= MAX_SLUG:
        return slug
    start = slug[: MAX_SLUG + 1].rpartition("-")[0] if len(slug) > MAX_SLUG else slug
    canonical = json.dumps(case, sort_keys=True, separators=(",", ":"))
    digits = sha256(canonical.encode()).hexdigest()[:6]
    return f"{start or slug[:MAX_SLUG] or 'case'}-{digits}"
