"""A skill's folder and the case files in it."""

from __future__ import annotations

from pathlib import Path

from pytest_upskill import CASE_FILE, EVALS_FILES
from pytest_upskill.cases.discovery import CaseDiscovery
from pytest_upskill.cases.load import SkillError, load_skills
from pytest_upskill.cases.skill import Skill
from pytest_upskill.checks.extensions import Extensions
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


def own_cases(folder: Path) -> tuple[list[Skill], list[str]]:
    """Read the case files in a skill's folder.

    Args:
        folder: A folder with a ``SKILL.md``.

    Returns:
        The skill once for each file, with the cases in it; and a line for each unreadable file.
    """
    discovery = CaseDiscovery()
    found: list[Skill] = []
    problems = []
    for file in _case_files(folder, discovery):
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
        folder: Its folder, as an absolute path.
        extensions: What plugins add to the format.
        evals: Whether the cases must be those of an evals file; otherwise a ``skill_meta.json``
            comes first, and a skill without cases is returned if there is no case file.

    Raises:
        CommandError: It cannot be read, has no such file, or the file belongs to several skills.
    """
    discovery = CaseDiscovery()
    own_files = [
        file
        for file in _case_files(folder, discovery)
        if discovery.owning_skill(file) == folder and not (evals and file.name == CASE_FILE)
    ]
    if evals and not own_files:
        raise CommandError(f"{folder}: --harden needs an evals file, such as evals/evals.json")
    file = min(own_files, key=_preference, default=folder / "SKILL.md")
    try:
        skills = load_skills(file, shown=str(file), extensions=extensions, discovery=discovery)
    except SkillError as error:
        raise problems_error(file, str(error).splitlines()) from None
    own = [skill for skill in skills if skill.folder.resolve() == folder.resolve()]
    if not own:
        raise CommandError(
            f"{file}: contains no case of this skill: name a skill with its own cases"
        )
    return own[0]


def _case_files(folder: Path, discovery: CaseDiscovery) -> list[Path]:
    """Return the case files in a skill's folder, including those of other skills in it."""
    # rglob does not follow links, and the folder of the cases may be one.
    paths = {*folder.rglob("*"), *folder.glob("*/*")}
    return sorted(filter(discovery.is_case_file, paths))


def _preference(file: Path) -> tuple[bool, bool, str, int]:
    """Return a key that is smallest for the file to choose: certain names first, then by name."""
    name = file.name
    return name != CASE_FILE, name not in EVALS_FILES, name, len(file.parts)
