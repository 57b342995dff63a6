"""The skill that a case in an evals file belongs to."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from pytest_upskill.formats.evals.keys import HINTING, NAMING

ReadFiles = Callable[[str], Mapping[str, str]]
"""Reads a file or the files of a folder, as text by name; raises Unreadable."""

NAMES_NONE = "names no skill: add 'skill'"
"""Why a case in a file for several skills cannot run."""

_FEWEST_BLANKS = 4
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


def owner_of(value: object, owner: Owner | None, find: FindOwner) -> tuple[Owner | None, str]:
    """Find the skill that a case belongs to: the one it names, else that of its file.

    Args:
        value: The case.
        owner: The skill that the whole file belongs to, if any.
        find: Finds another skill.

    Returns:
        The skill, and why the case cannot be run; "" if it can.
    """
    if not isinstance(value, dict):
        return owner, ""
    if key := next((key for key, part in value.items() if part and key in NAMING), ""):
        return _find_named(key, value[key], owner, find)
    if owner is not None:
        return owner, ""
    hinted = (find(name) for key in HINTING for name in names_in(value.get(key)))
    found = next(filter(None, hinted), None)
    return found, "" if found else NAMES_NONE


def names_in(value: object) -> Iterator[str]:
    """Yield the names of skills in a value, which is a text or a list of texts."""
    for name in value if isinstance(value, list) else [value]:
        if isinstance(name, str) and name.strip():
            yield name.strip().removeprefix("skill:").strip()


def is_sentence(text: str) -> bool:
    """Return whether a text has too many words for the name of a skill."""
    return text.count(" ") >= _FEWEST_BLANKS


def plain_name(name: str) -> str:
    """Normalize the name of a skill: drop path and namespace, lower-case it, join with hyphens."""
    last = name.strip().removesuffix("/SKILL.md").rstrip("/").rpartition("/")[2]
    return _NOT_IN_NAMES.sub("-", last.rpartition(":")[2].lower()).strip("-")


def _find_named(
    key: str, value: object, owner: Owner | None, find: FindOwner
) -> tuple[Owner | None, str]:
    names = list(dict.fromkeys(names_in(value)))
    if not names:
        return owner, f"{key}: must be the name of a skill"
    if len(names) > 1:
        return owner, f"{key}: it needs {len(names)} skills at once, but each skill runs alone"
    (name,) = names
    if owner is not None and (owner.is_called(name) or not plain_name(name)):
        return owner, ""
    found = find(name)
    return found or owner, "" if found else f"{key}: no skill near this file is called {name!r}"
