"""The catalogue: names and descriptions of skills, as an agent sees them before it takes one."""

from __future__ import annotations

import hashlib
import html
from collections.abc import Iterable
from dataclasses import dataclass, field

_LEAD = (
    "The following skills provide specialized instructions for specific tasks. When a task matches "
    "a skill's description, call the skill tool with the skill's name to load its full "
    "instructions before you go on.\n\n"
)


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class ListedSkill:
    """A skill in a catalogue."""

    name: str
    description: str

    @property
    def digest(self) -> str:
        """Digest of name and description."""
        return _digest(f"{self.name}\n{self.description}")[:16]


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalogue:
    """The skills among which an agent chooses."""

    skills: tuple[ListedSkill, ...]
    """Ordered by name; names are unique."""
    _texts: dict[int, str] = field(default_factory=dict, compare=False, repr=False)
    """The text of each run, made once: it is the longest part of every request."""

    @classmethod
    def of(cls, skills: Iterable[ListedSkill]) -> Catalogue:
        """Return the catalogue of some skills; of several with one name, the first counts."""
        named: dict[str, ListedSkill] = {}
        for skill in skills:
            named.setdefault(skill.name, skill)
        return cls(skills=tuple(sorted(named.values())))

    @property
    def names(self) -> frozenset[str]:
        """Names of the skills."""
        return frozenset(skill.name for skill in self.skills)

    def text(self, run: int) -> str:
        """Return the catalogue as a part of the system prompt.

        It is written as https://agentskills.io specifies. In each run the skills are in another
        order, given by a hash of run and name: so a new skill is inserted, and nothing else moves.

        Args:
            run: Index of the run, from 0.
        """
        if run not in self._texts:
            ordered = sorted(self.skills, key=lambda skill: _digest(f"{run}\n{skill.name}"))
            listed = "\n".join(map(_rendered, ordered))
            text = f"\n\n{_LEAD}<available_skills>\n{listed}\n</available_skills>"
            self._texts[run] = text
        return self._texts[run]


def replaced(catalogue: Catalogue, skill: ListedSkill, old_name: str) -> Catalogue:
    """Return a catalogue with a skill in place of the one with another name, or of its own.

    It is the same object if nothing changes, so that equal catalogues share their texts.

    Args:
        catalogue: The catalogue.
        skill: The skill to list.
        old_name: Name under which it is listed now.
    """
    if skill in catalogue.skills and old_name in {skill.name, ""}:
        return catalogue
    others = (each for each in catalogue.skills if each.name not in {old_name, skill.name})
    return Catalogue.of([skill, *others])


def _rendered(skill: ListedSkill) -> str:
    name, description = (html.escape(text, quote=False) for text in (skill.name, skill.description))
    return (
        f"  <skill>\n    <name>{name}</name>\n"
        f"    <description>{description}</description>\n  </skill>"
    )


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
