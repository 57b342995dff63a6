"""What an agent sees of the skills: the committed catalogue, or the skills side by side."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from pytest_upskill.formats.catalogue import Catalogue, ListedSkill, replace_skill
from pytest_upskill.formats.skill import Skill, SkillVersion
from pytest_upskill.formats.skill_md.frontmatter import read_skill_text
from pytest_upskill.formats.source.problems import BadFile
from pytest_upskill.formats.source.text import read_text
from pytest_upskill.repository.files import leads_out


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
        return self._catalogue_with(skill, skill)

    def before(self, skill: Skill) -> Catalogue:
        """Return the same with the earlier version of the skill, which there must be."""
        assert skill.before is not None
        return self._catalogue_with(skill, skill.before)

    def folder(self, folder: Path) -> Folder:
        """Return the skills in a folder."""
        if folder not in self._folders:
            self._folders[folder] = _read_folder(folder, self.root)
        return self._folders[folder]

    def _catalogue_with(self, skill: Skill, version: Skill | SkillVersion) -> Catalogue:
        base = self.committed or self.folder(skill.folder.absolute().parent).catalogue
        key = (listed(version), skill.name, id(base))
        if key not in self._own:
            self._own[key] = replace_skill(base, listed(version), skill.name)
        return self._own[key]


def listed(skill: Skill | SkillVersion) -> ListedSkill:
    """Return a skill as a catalogue lists it."""
    return ListedSkill(name=skill.name, description=skill.description)


def _read_folder(folder: Path, root: Path | None) -> Folder:
    found: list[ListedSkill] = []
    left_out: list[str] = []
    for file in sorted(folder.glob("*/SKILL.md")):
        if leads_out(file, root):
            left_out.append(f"{file.parent.name}: a link leads outside the project")
            continue
        try:
            text = read_skill_text(read_text(file), folder=file.parent.name)
        except BadFile as error:
            left_out.append(f"{file.parent.name}: {error.problems[0].what}")
        else:
            if text.hidden:
                left_out.append(f"{file.parent.name}: disable-model-invocation is set")
            else:
                found.append(ListedSkill(name=text.name, description=text.description))
    return Folder(catalogue=Catalogue.of(found), left_out=tuple(left_out))
