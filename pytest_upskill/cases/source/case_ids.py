"""Stable ids for cases without an ``id``, which depend on their content, not on their position."""

import json
import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from hashlib import sha256
from itertools import chain, count

from pytest_upskill.project.messages import safe_line

MAX_SLUG = 40
"""Maximum length in characters of a slug without a hash."""

MAX_ID = 100
"""Maximum length in characters of a case's id."""

GATES = frozenset({"gate", "trigger-gate"})
"""Names of gates, which no case can have."""

_WORD = re.compile(r"[^\W_]+")


def id_problem(name: str) -> str | None:
    """Return why pytest cannot use a name as the id of a case, None if it can."""
    if name in GATES:
        return f"{name!r} is the name of the skill's own gate: choose another"
    is_line = name.isprintable() and name == name.strip()
    # pytest appends "[model-arm]", and "##[" is a command to a CI runner.
    if is_line and not re.search(r"::|[\[\]]", name) and safe_line(f"{name}[") == f"{name}[":
        return None
    return "must be one line of printable characters, without '::', '[', ']', '##' or outer spaces"


def case_ids(cases: Sequence[tuple[str, str, object]]) -> list[str]:
    """Return a unique id for every case: its given name, else a slug of its question.

    A given name that pytest cannot use becomes a slug too. A slug that is shortened, shared or
    reserved, and a name that is given twice, get six hexadecimal digits of a hash over the whole
    case, so that an id changes only with its own case. Identical cases are numbered from the second
    one on.

    Args:
        cases: Given name (may be empty), question and whole entry of each case.
    """
    names = [
        given if _is_usable(given) else _slug(given) or _slug(question)
        for given, question, _ in cases
    ]
    times, times_given = Counter(names), Counter(given for given, _, _ in cases)
    ids: dict[str, None] = {}
    for name, (given, _, entry) in zip(names, cases, strict=True):
        is_final = _is_usable(given) and times_given[given] == 1
        is_unique = times[name] == 1 and name not in {"", *GATES}
        first = name if is_final else _name(name, entry, unique=is_unique)
        numbered = (f"{first}-{number}" for number in count(2))
        ids[next(free for free in chain([first], numbered) if free not in ids)] = None
    return list(ids)


def _is_usable(given: str) -> bool:
    return 0 < len(given) <= MAX_ID and not id_problem(given)


def _slug(text: str) -> str:
    return "-".join(_WORD.findall(unicodedata.normalize("NFKC", text).lower()))


def _name(slug: str, case: object, *, unique: bool) -> str:
    if unique and len(slug) <= MAX_SLUG:
        return slug
    start = slug[: MAX_SLUG + 1].rpartition("-")[0] if len(slug) > MAX_SLUG else slug
    canonical = json.dumps(case, sort_keys=True, separators=(",", ":"))
    digits = sha256(canonical.encode()).hexdigest()[:6]
    return f"{start or slug[:MAX_SLUG] or 'case'}-{digits}"
