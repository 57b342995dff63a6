"""Names of skills at the start of a file, found without parsing it."""

from __future__ import annotations

import re
from pathlib import Path

from pytest_upskill.formats.evals.keys import OWNER_HINT_KEYS, OWNER_KEYS
from pytest_upskill.formats.evals.owner import is_sentence, names_in
from pytest_upskill.formats.source.text import start_of

_NAMED = re.compile(
    rf"""["']?\b({"|".join((*sorted(OWNER_KEYS), *OWNER_HINT_KEYS))})["']?"""
    r"""\s*:\s*(?:\[\s*)?["']?([\w:./ -]+)"""
)
_SET_OF = re.compile(
    r"""(?<![\w:.-])["']?([\w:.-]+)["']?\s*:\s*(?:\{\s*)?["']?should_(?:not_)?trigger["']?\s*:\s*[\[\n]"""
)
"""The name of a skill in front of its trigger set."""
_LIST = re.compile(r"\[|^[^\S\n]*-\s", re.MULTILINE)
_TITLE = re.compile(r"""^name:\s*["']?([^"'\n]+)""", re.MULTILINE)


def title_of(folder: Path) -> str:
    """Return the name in the ``SKILL.md`` of a folder, "" if there is none."""
    found = _TITLE.search(start_of(folder / "SKILL.md"))
    return found[1] if found else ""


def skill_named_at_top(case_file: Path) -> str:
    """Return the name that a key such as ``skill`` has before the file's first list, "" if none."""
    start = start_of(case_file)
    first_list = _LIST.search(start)
    found = _NAMED.finditer(start, 0, first_list.start() if first_list else len(start))
    return next((match[2] for match in found if match[1] in OWNER_KEYS), "")


def names_of_cases(case_file: Path) -> list[str]:
    """Return the names of skills in a file: those of its cases, and those that should be chosen."""
    start = start_of(case_file)
    found = [*(named for _, named in _NAMED.findall(start)), *_SET_OF.findall(start)]
    names = dict.fromkeys(name for named in found for name in names_in(named))
    return [name for name in names if not is_sentence(name)]


def has_owners(case_file: Path) -> bool:
    """Return whether a file says which skills its cases belong to."""
    return any(key in OWNER_KEYS for key, _ in _NAMED.findall(start_of(case_file)))
