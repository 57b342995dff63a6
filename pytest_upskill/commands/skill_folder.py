"""A skill's folder and the case files in it."""

from __future__ import annotations

from pathlib import Path

from pytest_upskill.commands.command import CommandError
from pytest_upskill.formats.discovery import Places
from pytest_upskill.formats.load import SkillError, load_skills
from pytest_upskill.formats.skill import Skill


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
    places = Places()
    found: list[Skill] = []
    problems = []
    for file in sorted(path for path in folder.rglob("*") if places.may_hold_cases(path)):
        if not (file.is_file() and places.is_case_file(file)):
            continue
        try:
            skills = load_skills(file, places=places)
        except SkillError as error:
            problems.append(str(error).partition("\n")[0])
            continue
        found += [each for each in skills if each.folder.absolute() == folder.absolute()]
    return found, problems
