"""The skill that a case of an evals file is for."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

ReadFiles = Callable[[str], Mapping[str, str]]
"""Reads a file, or the files of a folder; raises OutsideError or Unreadable."""

NAMING = frozenset(
    {"skill", "skill_name", "skill_under_test", "target_skill", "target_skills", "skills"}
)
"""Keys of the skill that a case is to be run with."""

HINTING = (
    "expected_skill",
    "expect_skill",
    "expected_skills",
    "skills_expected_to_activate",
    "expected_triggers",
    "expected_activation",
    "should_trigger",
)
"""Keys of the skill that an agent is to choose: in a file for several skills, the one it is for."""

_NOT_IN_NAMES = re.compile(r"[^a-z0-9]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """A skill that cases belong to."""

    folder: Path
    names: Collection[str]
    """What it is called: its own name, and its folder's."""
    read_files: ReadFiles
    """Reads the input files of its cases."""

    def is_called(self, name: str) -> bool:
        """Tell whether a name means this skill, however it is written."""
        return plain_name(name) in map(plain_name, self.names)


FindOwner = Callable[[str], Owner | None]
"""Finds the skill of a name; None where there is no such skill."""


def owner_of(value: object, owner: Owner | None, find: FindOwner) -> tuple[Owner | None, str]:
    """Find the skill that a case is for: the one it names, else that of its file.

    Args:
        value: What the case says.
        owner: The skill of the file, if it is for one.
        find: Finds another skill.

    Returns:
        The skill, and why the case cannot be run with any; empty where it can.
    """
    if not isinstance(value, dict):
        return owner, ""
    if key := next((key for key, part in value.items() if part and key in NAMING), ""):
        return _named(key, value[key], owner, find)
    if owner is not None:
        return owner, ""
    hinted = (find(name) for key in HINTING for name in names_in(value.get(key)))
    found = next(filter(None, hinted), None)
    return found, "" if found else "names no skill: add 'skill'"


def names_in(value: object) -> Iterator[str]:
    """List the names of skills in a value: a text, or a list of texts."""
    for name in value if isinstance(value, list) else [value]:
        if isinstance(name, str) and name.strip():
            yield name.strip().removeprefix("skill:").strip()


def plain_name(name: str) -> str:
    """Write the name of a skill without what differs from writer to writer."""
    last = name.strip().removesuffix("/SKILL.md").rstrip("/").rpartition("/")[2]
    return _NOT_IN_NAMES.sub("-", last.rpartition(":")[2].lower()).strip("-")


def _named(
    key: str, value: object, owner: Owner | None, find: FindOwner
) -> tuple[Owner | None, str]:
    names = list(dict.fromkeys(names_in(value)))
    if not names:
        return owner, f"{key}: must be the name of a skill"
    if len(names) > 1:
        return owner, f"{key}: it is for {len(names)} skills at once, and one is run at a time"
    (name,) = names
    if owner is not None and (owner.is_called(name) or not plain_name(name)):
        return owner, ""
    found = find(name)
    return found or owner, "" if found else f"{key}: no skill is called {name!r} near this file"
