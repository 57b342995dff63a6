"""The skill that a case in an evals file belongs to, by what the file says."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pytest_upskill.cases.evals.shapes import OWNER_HINT_KEYS, OWNER_KEYS
from pytest_upskill.cases.source.files import start_of
from pytest_upskill.checks.files import WorkspaceFile

ReadFiles = Callable[[str], Sequence[WorkspaceFile]]
"""Reads a file or the files of a folder; raises Unreadable."""

NAMES_NONE = "names no skill: add 'skill'"
"""Why a case in a file for several skills cannot run."""

_BLANKS_OF_SENTENCE = 4
"""Fewest blanks of a text that is a sentence, not a name."""

_NOT_IN_NAMES = re.compile(r"[^a-z0-9]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """A skill that cases belong to."""

    folder: Path
    names: Collection[str]
    """Its own name and the name of its folder."""
    read_files: ReadFiles
    """Reads the input files of its cases."""

    def is_called(self, name: str) -> bool:
        """Return whether a name means this skill, by `plain_name`."""
        return plain_name(name) in map(plain_name, self.names)


FindOwner = Callable[[str], Owner | None]
"""Returns the skill with a given name, None if there is none."""


def owner_of(
    value: object, file_owner: Owner | None, find: FindOwner
) -> tuple[Owner | None, str | None]:
    """Find the skill that a case belongs to: the one it names, else that of its file.

    Args:
        value: The case.
        file_owner: The skill that the whole file belongs to, if any.
        find: Finds another skill.

    Returns:
        The skill, and why the case cannot run with it; None if it can.
    """
    if not isinstance(value, dict):
        return file_owner, None
    for key, part in value.items():
        if part and key in OWNER_KEYS:
            return _find_named(key, part, file_owner, find)
    if file_owner is not None:
        return file_owner, None
    for key in OWNER_HINT_KEYS:
        for name in names_in(value.get(key)):
            if owner := find(name):
                return owner, None
    return None, NAMES_NONE


def names_in(value: object) -> Iterator[str]:
    """Yield the names of skills in a value, which is a text or a list of texts."""
    for name in value if isinstance(value, list) else [value]:
        if isinstance(name, str) and name.strip():
            yield name.strip().removeprefix("skill:").strip()


def is_sentence(text: str) -> bool:
    """Return whether a text has too many words for the name of a skill."""
    return text.count(" ") >= _BLANKS_OF_SENTENCE


def plain_name(name: str) -> str:
    """Normalize the name of a skill: drop path and namespace, lower-case it, join with hyphens."""
    last = name.strip().removesuffix("/SKILL.md").rstrip("/").rpartition("/")[2]
    return _NOT_IN_NAMES.sub("-", last.rpartition(":")[2].lower()).strip("-")


def _find_named(
    key: str, value: object, file_owner: Owner | None, find: FindOwner
) -> tuple[Owner | None, str | None]:
    """Find the skill that a key of a case names; see `owner_of`."""
    names = list(dict.fromkeys(names_in(value)))
    if not names:
        return file_owner, f"{key}: must be the name of a skill"
    if len(names) > 1:
        return file_owner, f"{key}: it needs {len(names)} skills at once, but each skill runs alone"
    (name,) = names
    if file_owner is not None and (file_owner.is_called(name) or not plain_name(name)):
        return file_owner, None
    if owner := find(name):
        return owner, None
    return file_owner, f"{key}: no skill near this file is called {name!r}"


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
