"""The hold-out: cases that are never used to choose a version of a skill."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence

from pytest_upskill.formats.skill import Case

SHARE = 0.4
"""Share of the cases that are held out."""

MIN_HELD_OUT = 8
"""Cases that a hold-out needs to decide: with 10 runs of each, +20 points show in 95 % of looks."""


def is_held_out(case_id: str) -> bool:
    """Return whether a case is held out, which depends on its id alone and never changes."""
    number = int.from_bytes(hashlib.sha256(case_id.encode()).digest()[:8], "big")
    return number / 2**64 < SHARE


def split(cases: Iterable[Case]) -> tuple[list[Case], list[Case]]:
    """Return the train cases and the held-out cases."""
    cases = list(cases)
    return (
        [case for case in cases if not is_held_out(case.id)],
        [case for case in cases if is_held_out(case.id)],
    )


def missing_cases(held_out: int) -> int:
    """Estimate how many more cases would fill the hold-out, as each has a chance of ``SHARE``."""
    lacking = max(0, MIN_HELD_OUT - held_out)
    return -int(-lacking // SHARE)


def digest_of(case: Case) -> str:
    """Return the digest of a case's id and question; checks may be fixed without a new digest."""
    return _digest([case.id, case.input, dict(case.files)])


def holdout_digest(cases: Sequence[Case]) -> str:
    """Return the digest of a hold-out, whatever the order of its cases."""
    return _digest(sorted(map(digest_of, cases)))


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]
