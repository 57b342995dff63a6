"""A skill's folder and the case files in it."""

from __future__ import annotations

from pathlib import Path

from pytest_upskill import CASE_FILE
from pytest_upskill.cases.adapters import registry
from pytest_upskill.cases.discovery import CaseDiscovery
from pytest_upskill.cases.load import SkillError, load_skills
from pytest_upskill.cases.skill import Skill
from pytest_upskill.checks.extensions import NO_EXTENSIONS, Extensions
from pytest_upskill.commands.command import CommandError, problems_error


def folder_of_skill(path: Path) -> Path:
    """Return the folder of a skill that a path names: the folder itself, or its ``SKILL.md``.

    Raises:
        CommandError: There is none.
    """
    folder = path.parent if path.name == "SKILL.md" else path
    if not (folder / "SKILL.md").is_file():
        raise CommandError(f"{path}: no SKILL.md in it: name the folder of a skill")
    return folder


def own_cases(
    folder: Path, extensions: Extensions = NO_EXTENSIONS
) -> tuple[list[Skill], list[str]]:
    """Read the case files in a skill's folder.

    Args:
        folder: A folder with a ``SKILL.md``.
        extensions: What plugins add to the format.

    Returns:
        The skill once for each file, with the cases in it; and the problems of unreadable files.
    """
    discovery = CaseDiscovery()
    found: list[Skill] = []
    problems: list[str] = []
    # rglob does not follow links, and the folder of the cases may be one.
    for file in sorted(filter(discovery.is_case_file, {*folder.rglob("*"), *folder.glob("*/*")})):
        try:
            skills = load_skills(file, shown=str(file), extensions=extensions, discovery=discovery)
        except SkillError as error:
            problems += str(error).splitlines()
            continue
        found += [each for each in skills if each.folder.absolute() == folder.absolute()]
    return found, problems


def load_skill(folder: Path, extensions: Extensions) -> Skill:
    """Read a skill with the cases of one file.

    Args:
        folder: Its folder, as an absolute path.
        extensions: What plugins add to the format.

    Returns:
        The skill with the cases of its ``skill_meta.json``, else of another case file, else none.

    Raises:
        CommandError: It cannot be read.
    """
    found, problems = own_cases(folder, extensions)
    if problems:
        raise problems_error(folder, problems)
    if found:
        return min(found, key=lambda skill: _preference(skill.case_file))
    try:
        return load_skills(folder / "SKILL.md", extensions=extensions)[0]
    except SkillError as error:
        raise problems_error(folder / "SKILL.md", str(error).splitlines()) from None


def _preference(file: Path) -> tuple[bool, bool, str, int]:
    """Return a key that is smallest for the file to choose: certain names first, then by name."""
    name = file.name
    return name != CASE_FILE, not registry.is_certain(file), name, len(file.parts)
