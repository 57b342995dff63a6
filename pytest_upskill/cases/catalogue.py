"""The catalogue: names and descriptions of skills, as an agent sees them before it loads one."""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ValidationError

from pytest_upskill.cases.skill import Case, Skill, plain_name
from pytest_upskill.cases.skill_md import read_skill_text
from pytest_upskill.cases.source.document import BadFile
from pytest_upskill.cases.source.files import read_text
from pytest_upskill.project.digest import digest_of
from pytest_upskill.project.files import json_by_line, leads_out, read_state, write_file
from pytest_upskill.project.messages import did_you_mean

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
        return digest_of(f"{self.name}\n{self.description}")


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
        named = {skill.name: skill for skill in reversed([*skills])}
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

    def why_unlisted(self, case: Case) -> str | None:
        """Return why the catalogue cannot test which skill a case expects, None if it can."""
        trigger = case.trigger
        others = trigger.others if trigger and not trigger.should else ()
        if not others or any(map(self.named, others)):
            return None
        names = " or ".join(map(repr, others))
        meant = did_you_mean(others[0], sorted(self.names))
        return (
            f"expects {names}{meant}, which is not in the catalogue: the skills beside this one, "
            "or below"
        )

    @cached_property
    def _plain_names(self) -> Mapping[str, str]:
        return {plain_name(name): name for name in self.names}

    def with_skill(self, skill: ListedSkill, old_name: str) -> Catalogue:
        """Return the catalogue with a skill instead of those named `old_name` or like itself."""
        if skill in self.skills and old_name == skill.name:
            return self  # with its texts
        others = (each for each in self.skills if each.name not in {old_name, skill.name})
        return Catalogue.of([skill, *others])

    def text(self, run: int) -> str:
        """Return the catalogue as a part of the system prompt.

        It is written as https://agentskills.io specifies. The order of the skills differs between
        runs, and a hash of run and name decides it: so a new skill does not move the others.

        Args:
            run: Index of the run, from 0.
        """
        if run not in self._texts:
            ordered = sorted(self.skills, key=lambda skill: sort_key(run, skill.name))
            self._texts[run] = available_skills(map(asdict, ordered))
        return self._texts[run]


def sort_key(run: int, name: str) -> str:
    """Return the sort key of a skill in a run; adding a skill does not reorder the others.

    Args:
        run: Index of the run, from 0.
        name: Name of the skill.
    """
    return digest_of(f"{run}\n{name}")


def available_skills(skills: Iterable[Mapping[str, str]]) -> str:
    """Return skills as a part of the system prompt, as https://agentskills.io specifies.

    Args:
        skills: Fields of each skill by name, such as its name and description.
    """
    lines = []
    for skill in skills:
        fields = ((name, html.escape(text, quote=False)) for name, text in skill.items())
        lines += ["  <skill>", *(f"    <{name}>{text}</{name}>" for name, text in fields)]
        lines.append("  </skill>")
    entries = "\n".join(lines)
    return f"\n\n{_LEAD}<available_skills>\n{entries}\n</available_skills>"


class CatalogueError(Exception):
    """A catalogue file cannot be used; the message has its name and the cure."""


class _File(BaseModel, strict=True, defer_build=True):
    format: Literal[1]
    skills: list[ListedSkill]


def read_catalogue(file: Path) -> Catalogue:
    """Read a catalogue file.

    Raises:
        CatalogueError: The file cannot be read, or is not a catalogue.
    """
    cure = "restore it from git, or write it again with --upskill-catalogue-update"
    try:
        return catalogue_in(read_state(file))
    except OSError as error:
        raise CatalogueError(f"{file}: cannot be read: {error.strerror}: {cure}") from None
    except ValidationError:
        raise CatalogueError(f"{file}: not a catalogue: {cure}") from None


def catalogue_in(content: bytes) -> Catalogue:
    """Return the catalogue that a file contains.

    Raises:
        ValueError: It contains none.
    """
    return Catalogue.of(_File.model_validate_json(content).skills)


def write_catalogue(file: Path, catalogue: Catalogue) -> bool:
    """Write a catalogue file with a line for each skill, and return whether it changed.

    Raises:
        OSError: The file cannot be written.
    """
    text = json_by_line({"format": 1, "skills": [*map(asdict, catalogue.skills)]})
    with suppress(FileNotFoundError):
        if read_state(file) == text:
            return False
    write_file(file, text, mode=0o644)
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Folder:
    """The skills in a folder."""

    catalogue: Catalogue
    left_out: tuple[str, ...]
    """A line for each skill that no agent could choose."""
    shared_names: frozenset[str]
    """Names that more than one of the skills has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalogues:
    """The catalogues of a session, each read once.

    Attributes:
        committed: The catalogue of the committed file; None to show the skills next to the one
            under test.
        file: That file.
        root: Folder of the project; links that lead out of it are not followed.
        folders: The skills of the folders that were read.
    """

    committed: Catalogue | None = None
    file: Path | None = None
    root: Path | None = None
    folders: dict[Path, Folder] = field(default_factory=dict, compare=False, repr=False)

    def of(self, skill: Skill, version: Skill | None = None) -> Catalogue:
        """Return what an agent sees with a skill, by default as it is now."""
        base = self.committed or self._around(skill.folder.absolute())
        return base.with_skill(as_listed(version or skill), skill.name)

    def folder(self, folder: Path) -> Folder:
        """Return the skills in a folder."""
        if folder not in self.folders:
            self.folders[folder] = _read_folder(folder, self.root)
        return self.folders[folder]

    def why_ambiguous(self, skill: Skill) -> str | None:
        """Return why a skill cannot be told from another one beside it, None if it can."""
        if skill.name not in self.folder(skill.folder.absolute().parent).shared_names:
            return None
        return (
            f"another skill beside it is called {skill.name!r} too, and an agent cannot tell them "
            "apart: rename one"
        )

    def _around(self, folder: Path) -> Catalogue:
        """Return the skills beside and below a skill."""
        # A repository that is one skill lies beside other repositories, not beside skills.
        is_repository = (folder / ".git").exists()
        beside = Catalogue.of(()) if is_repository else self.folder(folder.parent).catalogue
        below = _read_folder(folder, self.root, _BELOW).catalogue
        return Catalogue.of((*beside.skills, *below.skills)) if below.skills else beside


_BESIDE = ("*/SKILL.md",)
_BELOW = ("*/SKILL.md", "*/*/SKILL.md", ".*/skills/*/SKILL.md", "plugins/*/skills/*/SKILL.md")
"""Where the skills of a folder, and those inside a skill, are."""


def as_listed(skill: Skill) -> ListedSkill:
    """Return a skill as a catalogue lists it."""
    return ListedSkill(name=skill.name, description=skill.description)


def listing(content: str, *, folder: str) -> ListedSkill | str:
    """Return a skill as agents see it, or why they cannot.

    Args:
        content: Its ``SKILL.md``.
        folder: The name of its folder.

    Raises:
        BadFile: The content is not a skill.
    """
    text = read_skill_text(content, folder=folder)
    if text.hidden:
        return "disable-model-invocation is set"
    return ListedSkill(name=text.name, description=text.description)


def _read_folder(folder: Path, root: Path | None, patterns: Iterable[str] = _BESIDE) -> Folder:
    found: list[ListedSkill] = []
    left_out: list[str] = []
    for file in sorted(file for pattern in patterns for file in folder.glob(pattern)):
        if leads_out(file, root):
            left_out.append(f"{file.parent.name}: a link leads outside the project")
            continue
        try:
            skill = listing(read_text(file), folder=file.parent.name)
        except BadFile as error:
            skill = error.problems[0].what
        if isinstance(skill, ListedSkill):
            found.append(skill)
        else:
            left_out.append(f"{file.parent.name}: {skill}")
    counts = Counter(skill.name for skill in found)
    return Folder(
        catalogue=Catalogue.of(found),
        left_out=tuple(left_out),
        shared_names=frozenset(name for name, count in counts.items() if count > 1),
    )
