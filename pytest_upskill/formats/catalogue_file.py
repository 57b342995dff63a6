"""The committed catalogue file, and the catalogue of the skills next to the one under test."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from pytest_upskill.formats.catalogue import Catalogue, ListedSkill, replaced
from pytest_upskill.formats.skill import Skill, SkillVersion
from pytest_upskill.formats.skill_md.files import leads_out
from pytest_upskill.formats.skill_md.frontmatter import read_skill_text
from pytest_upskill.formats.source.problems import BadFile
from pytest_upskill.repository.atomic_write import write_whole

FILE = "catalogue.json"
"""Name of the committed file, in the folder ``.upskill``."""

_FORMAT = 1


class CatalogueError(Exception):
    """A catalogue file cannot be used; the message has its name and the cure."""


class _Entry(BaseModel):
    model_config = ConfigDict(extra="ignore", strict=True)
    name: str
    description: str


class _File(BaseModel):
    model_config = ConfigDict(extra="ignore", strict=True)
    format: int
    skills: list[_Entry]


@dataclass(frozen=True, slots=True, kw_only=True)
class Folder:
    """The skills in a folder."""

    catalogue: Catalogue
    left_out: tuple[str, ...]
    """A line for each skill that no agent could choose."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalogues:
    """The catalogues of a session, each read once.

    Attributes:
        committed: The catalogue of the committed file; None to show the skills next to the one
            under test.
        root: Folder of the project; links that lead out of it are not followed.
    """

    committed: Catalogue | None = None
    root: Path | None = None
    _folders: dict[Path, Folder] = field(default_factory=dict, compare=False, repr=False)
    _own: dict[tuple[ListedSkill, str, int], Catalogue] = field(
        default_factory=dict, compare=False, repr=False
    )

    def of(self, skill: Skill) -> Catalogue:
        """Return what an agent sees with a skill as it is now."""
        return self._shown(skill, listed(skill), skill.name)

    def before(self, skill: Skill) -> Catalogue:
        """Return the same with the earlier version of the skill, which there must be."""
        assert skill.before is not None
        return self._shown(skill, listed(skill.before), skill.name)

    def folder(self, folder: Path) -> Folder:
        """Return the skills in a folder."""
        if folder not in self._folders:
            self._folders[folder] = _read_folder(folder, self.root)
        return self._folders[folder]

    def _shown(self, skill: Skill, own: ListedSkill, name: str) -> Catalogue:
        base = self.committed or self.folder(skill.folder.absolute().parent).catalogue
        key = (own, name, id(base))
        if key not in self._own:
            self._own[key] = replaced(base, own, name)
        return self._own[key]


def listed(skill: Skill | SkillVersion) -> ListedSkill:
    """Return a skill as a catalogue lists it."""
    return ListedSkill(name=skill.name, description=skill.description)


def read_catalogue(file: Path) -> Catalogue:
    """Read a catalogue file.

    Raises:
        CatalogueError: The file cannot be read, is not a catalogue, or has a newer format.
    """
    cure = "restore it from git, or write it again with --upskill-catalogue-update"
    try:
        found = _File.model_validate_json(file.read_bytes())
    except OSError as error:
        raise CatalogueError(f"{file}: cannot be read: {error.strerror}: {cure}") from None
    except ValidationError:
        raise CatalogueError(f"{file}: not a catalogue: {cure}") from None
    if found.format > _FORMAT:
        raise CatalogueError(
            f"{file}: format {found.format} is newer than this pytest-upskill reads ({_FORMAT}): "
            "pip install -U pytest-upskill"
        )
    return Catalogue.of(
        ListedSkill(name=entry.name, description=entry.description) for entry in found.skills
    )


def write_catalogue(file: Path, catalogue: Catalogue) -> bool:
    """Write a catalogue file with a line for each skill, and return whether it changed.

    Raises:
        OSError: The file cannot be written.
    """
    lines = ",\n".join(
        "  " + json.dumps({"name": each.name, "description": each.description}, ensure_ascii=False)
        for each in catalogue.skills
    )
    text = f'{{\n "format": {_FORMAT},\n "skills": [\n{lines}\n ]\n}}\n'.encode()
    if file.exists() and file.read_bytes() == text:
        return False
    write_whole(file, text, mode=0o644)
    return True


def together(folders: Iterable[Folder]) -> Catalogue:
    """Return the catalogue of the skills in several folders."""
    return Catalogue.of(skill for folder in folders for skill in folder.catalogue.skills)


def _read_folder(folder: Path, root: Path | None) -> Folder:
    found: list[ListedSkill] = []
    left_out: list[str] = []
    for file in sorted(folder.glob("*/SKILL.md")):
        if leads_out(file, root):
            left_out.append(f"{file.parent.name}: a link leads outside the project")
            continue
        try:
            text = read_skill_text(file.read_text("utf-8-sig"), folder=file.parent.name)
        except BadFile as error:
            left_out.append(f"{file.parent.name}: {error.problems[0].what}")
        except (OSError, UnicodeDecodeError):
            left_out.append(f"{file.parent.name}: its SKILL.md cannot be read")
        else:
            if text.hidden:
                left_out.append(f"{file.parent.name}: disable-model-invocation is set")
            else:
                found.append(ListedSkill(name=text.name, description=text.description))
    return Folder(catalogue=Catalogue.of(found), left_out=tuple(left_out))
