"""The catalogue: names and descriptions of skills, as an agent sees them before it loads one."""

from __future__ import annotations

import hashlib
import html
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from pytest_upskill.formats.evals.owner import plain_name

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


@dataclass(frozen=True, kw_only=True)
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

    @cached_property
    def names(self) -> frozenset[str]:
        """Names of the skills."""
        return frozenset(skill.name for skill in self.skills)

    def named(self, name: str) -> str | None:
        """Return a skill's name as it is listed, None if no skill has that name.

        Args:
            name: The name as in a case, perhaps with a namespace: ``tables:csv``.
        """
        return name if name in self.names else self._plain_names.get(plain_name(name))

    @cached_property
    def _plain_names(self) -> Mapping[str, str]:
        return {plain_name(name): name for name in self.names}

    def text(self, run: int) -> str:
        """Return the catalogue as a part of the system prompt.

        It is written as https://agentskills.io specifies. The order of the skills differs between
        runs, and a hash of run and name decides it: so a new skill does not move the others.

        Args:
            run: Index of the run, from 0.
        """
        if run not in self._texts:
            ordered = sorted(self.skills, key=lambda skill: sort_key(run, skill.name))
            self._texts[run] = available_skills(
                {"name": skill.name, "description": skill.description} for skill in ordered
            )
        return self._texts[run]


def replace_skill(catalogue: Catalogue, skill: ListedSkill, old_name: str) -> Catalogue:
    """Return a catalogue in which a skill replaces those named `old_name` or like itself.

    It is the same object if nothing changes, so that equal catalogues share their texts.

    Args:
        catalogue: The catalogue.
        skill: The skill to list.
        old_name: Name under which it is listed now.
    """
    if skill in catalogue.skills and old_name == skill.name:
        return catalogue
    others = (each for each in catalogue.skills if each.name not in {old_name, skill.name})
    return Catalogue.of([skill, *others])


def sort_key(run: int, name: str) -> str:
    """Return the sort key of a skill in a run; adding a skill does not reorder the others.

    Args:
        run: Index of the run, from 0.
        name: Name of the skill.
    """
    return _digest(f"{run}\n{name}")


def available_skills(skills: Iterable[Mapping[str, str]]) -> str:
    """Return skills as a part of the system prompt, as https://agentskills.io specifies.

    Args:
        skills: Fields of each skill by name, such as its name and description.
    """
    listed = "\n".join(f"  <skill>\n{_fields(skill)}\n  </skill>" for skill in skills)
    return f"\n\n{_LEAD}<available_skills>\n{listed}\n</available_skills>"


def _fields(skill: Mapping[str, str]) -> str:
    return "\n".join(
        f"    <{name}>{html.escape(text, quote=False)}</{name}>" for name, text in skill.items()
    )


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
