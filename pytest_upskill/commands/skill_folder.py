"""A skill's folder and the case files in it."""

from __future__ import annotations

from pathlib import Path

from pytest_upskill import CASE_FILE, EVALS_FILES
from pytest_upskill.checks.extensions import Extensions
from pytest_upskill.commands.command import CommandError, problems_error
from pytest_upskill.formats.discovery import CaseDiscovery
from pytest_upskill.formats.load import SkillError, load_skills
from pytest_upskill.formats.skill import Skill

_FOLDERS = ("", "evals", "eval", "tests")
"""Where a teacher's commands look for a case file, inside the skill's folder."""


def folder_of_skill(path: Path) -> Path:
    """Return the folder of a skill that a path names: the folder itself, or its ``SKILL.md``.

    Raises:
        CommandError: There is none.
    """
    folder = path.parent if path.name == "SKILL.md" else path
    if not (folder / "SKILL.md").is_file():
        raise CommandError(f"{path}: no SKILL.md in it: name the folder of a skill")
    return folder


def own_cases(folder: Path) -> tuple[list[Skill], list[str]]:
    """Read the case files in a skill's folder.

    Args:
        folder: A folder with a ``SKILL.md``.

    Returns:
        The skill with the cases of each file, and a line for each file that cannot be read.
    """
    discovery = CaseDiscovery()
    found: list[Skill] = []
    problems = []
    for file in sorted(filter(discovery.is_case_file, folder.rglob("*"))):
        try:
            skills = load_skills(file, discovery=discovery)
        except SkillError as error:
            problems.append(str(error).partition("\n")[0])
            continue
        found += [each for each in skills if each.folder.absolute() == folder.absolute()]
    return found, problems


def load_skill(folder: Path, extensions: Extensions, *, evals: bool = False) -> Skill:
    """Read a skill with the cases of one file.

    Args:
        folder: Its folder.
        extensions: What plugins add to the format.
        evals: Whether the cases are those of an evals file; else a ``skill_meta.json`` comes first,
            and a skill may have none.

    Raises:
        CommandError: It cannot be read, has no such file, or the file belongs to several skills.
    """
    names = sorted(EVALS_FILES) if evals else [CASE_FILE, *sorted(EVALS_FILES)]
    places = (folder / sub / name for name in names for sub in _FOLDERS)
    file = next((place for place in places if place.is_file()), folder / "SKILL.md")
    if evals and file.name == "SKILL.md":
        raise CommandError(f"{folder}: --harden needs an evals file, such as evals/evals.json")
    try:
        skills = load_skills(file, shown=str(file), extensions=extensions)
    except SkillError as error:
        raise problems_error(file, str(error).splitlines()) from None
    own = [skill for skill in skills if skill.folder.resolve() == folder.resolve()]
    if not own:
        raise CommandError(
            f"{file}: contains no case of this skill: name a skill with its own cases"
        )
    return own[0]
