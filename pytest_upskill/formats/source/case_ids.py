"""Stable ids for cases without an ``id``, which depend on their content, not on their position."""

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
"""Maximum length in characters of a slug without a hash."""

MAX_ID = 100
"""Maximum length in characters of a case's id."""

GATES = frozenset({"gate", "trigger-gate"})
"""Names of gates, which no case can have."""

_WORD = re.compile(r"[^\W_]+")


def case_ids(cases: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the id of every case: its ``id``, else a slug of its ``input``.

    A slug that is shortened, shared or reserved gets six hexadecimal digits of a hash over the
    whole case, so that an id changes only with its own case. Identical cases share an id.

    Args:
        cases: Entries of a case file, as read from JSON.
    """
    slugs = [case.get("id") or _slug(case["input"]) for case in cases]
    times = Counter(slugs)
    taken = {slug for slug, count in times.items() if count > 1} | {"", *GATES}
    return [
        case.get("id") or _name(slug, case, unique=slug not in taken)
        for slug, case in zip(slugs, cases, strict=True)
    ]


def lenient_ids(cases: Sequence[tuple[str, str, Mapping[str, Any]]]) -> list[str]:
    """Return a unique id for every case, even if the given names are not valid or not unique.

    A name that pytest cannot use becomes a slug. A shared name gets the hash of its case.
    Identical cases are numbered from the second one on.

    Args:
        cases: Given name (may be empty), question and whole entry of each case.
    """
    names = [_usable(given) or _slug(given) or _slug(question) for given, question, _ in cases]
    times = Counter(names)
    unique = [times[name] == 1 and name not in {"", *GATES} for name in names]
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
    # pytest appends "[model-arm]", and "##[" is a command to a CI runner.
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
