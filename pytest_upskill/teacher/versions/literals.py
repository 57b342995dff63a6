"""Lines of a new version that contain what a check looks for; they are marked in the diff."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from contextlib import suppress

from pytest_upskill.checks import CheckError, Contains, ContainsAny, Regex, ValueAtPath
from pytest_upskill.formats.skill import Case

_SHORTEST = 3
_NAMED = 3
"""Cases that are named at a line."""


def marked_diff(old: str, new: str, cases: Sequence[Case], *, name: str) -> Iterator[str]:
    """Yield the lines of a unified diff, those marked that newly say what a check looks for."""
    lines = difflib.unified_diff(
        old.splitlines(), new.splitlines(), f"a/{name}", f"b/{name}", lineterm="", n=2
    )
    for line in lines:
        added = line[1:] if line.startswith("+") and not line.startswith("+++") else ""
        case_ids = sorted({case.id for case in cases if added and _reveals_check(added, case, old)})
        yield line + (
            f"    <- a check of {_join_names(case_ids)} looks for this" if case_ids else ""
        )


def _join_names(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


def _reveals_check(line: str, case: Case, old: str) -> bool:
    """Return whether a line says what a check of a case looks for, and the old text does not."""
    for check in case.checks:
        match check:
            case Contains():
                texts: Sequence[str] = [check.text]
            case ContainsAny():
                texts = check.texts
            case ValueAtPath() if isinstance(check.value, str):
                texts = [check.value]
            case Regex():
                with suppress(CheckError):
                    if check.check(line).passed and not check.check(old).passed:
                        return True
                continue
            case _:
                continue
        for text in texts:
            folded = text.casefold()
            if (
                len(text) >= _SHORTEST
                and folded in line.casefold()
                and folded not in old.casefold()
            ):
                return True
    return False
