"""Reading of the skill that a teacher works on, with its cases."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from pytest_upskill import CASE_FILE, EVALS_FILES
from pytest_upskill.checks.extensions import Extensions
from pytest_upskill.completions.workplace import WorkError
from pytest_upskill.formats.load import SkillError, load_skills
from pytest_upskill.formats.skill import Skill

_FOLDERS = ("", "evals", "eval", "tests")


def case_file_of(folder: Path, names: Iterable[str]) -> Path | None:
    """Return the first case file of a skill with one of some names, None if it has none."""
    places = (folder / sub / name for name in names for sub in _FOLDERS)
    return next((place for place in places if place.is_file()), None)


def load_evals(folder: Path, extensions: Extensions) -> Skill:
    """Read a skill with the cases of its evals file.

    Raises:
        WorkError: It has none, or it cannot be read.
    """
    file = case_file_of(folder, sorted(EVALS_FILES))
    if file is None:
        raise WorkError(f"{folder}: --harden needs an evals file, such as evals/evals.json")
    return _load(folder, file, extensions)


def load_skill(folder: Path, extensions: Extensions) -> Skill:
    """Read a skill with its cases, or without if it has none.

    Raises:
        WorkError: It cannot be read, or the file belongs to several skills.
    """
    names = (CASE_FILE, *sorted(EVALS_FILES))
    return _load(folder, case_file_of(folder, names) or folder / "SKILL.md", extensions)


def _load(folder: Path, file: Path, extensions: Extensions) -> Skill:
    try:
        skills = load_skills(file, shown=str(file), extensions=extensions)
    except SkillError as error:
        raise WorkError(str(error)) from None
    own = [skill for skill in skills if skill.folder.resolve() == folder.resolve()]
    if not own:
        raise WorkError(f"{file}: contains no case of this skill: name a skill with its own cases")
    return own[0]
