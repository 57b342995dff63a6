"""What the commands share: exit codes, arguments, errors, output, and the cases of a skill."""

import argparse
import os
import re
import sys
from collections.abc import Callable, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, Final, NoReturn

from pytest_upskill import CASE_FILE
from pytest_upskill.cases.discovery import CaseDiscovery, skill_folders
from pytest_upskill.cases.load import SkillError, load_skills, pooled
from pytest_upskill.cases.skill import Skill
from pytest_upskill.checks.extensions import NO_EXTENSIONS, Extensions
from pytest_upskill.project.files import write_file
from pytest_upskill.project.messages import did_you_mean, safe_line

PROGRAM: Final = "pytest-upskill"

STUDENT: Final = "haiku"
"""The model to run on if neither an option nor the ini file names one."""

PASSED: Final = 0
INTERRUPTED: Final = 2
UNUSABLE: Final = 4
"""Exit codes with the same meaning as in pytest; 4 is wrong usage of the command line."""


class CommandError(Exception):
    """A command cannot run; the message is one line with the cure."""


def problems_error(path: Path, problems: Sequence[str]) -> CommandError:
    """Return the error for a file with problems, after printing all but a single one."""
    if len(problems) == 1:
        return CommandError(problems[0])
    warn(*problems)
    return CommandError(f"{path}: cannot be used: {len(problems)} problems, listed above")


def whole_number_type(low: int, high: int | None = None) -> Callable[[str], int]:
    """Return an argparse type for whole numbers from ``low`` to ``high``, None for no maximum."""

    def parse(text: str) -> int:
        if not text.isdecimal() or int(text) < low or (high is not None and int(text) > high):
            limits = f"above {low - 1}" if high is None else f"from {low} to {high}"
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number {limits}")
        return int(text)

    return parse


def with_generic_server(model: str, base_url: str | None) -> str:
    """Return a model's name with the server of ``GENERIC_BASE_URL``, if it is for that."""
    url = os.environ.get("GENERIC_BASE_URL", "")
    is_generic = re.match(r"([^=]+=)?generic[.:]", model) and "@http" not in model
    return f"{model}@{url}" if url and is_generic and not base_url else model


class Parser(argparse.ArgumentParser):
    """A parser that raises errors instead of exiting: argparse exits with 2, pytest with 4."""

    def __init__(self, **more: Any) -> None:
        super().__init__(allow_abbrev=False, **more)

    def error(self, message: str) -> NoReturn:
        """Raise CommandError with the message, what was meant, and where to find help."""
        unknown = message.partition("unrecognized arguments: ")[2]
        meant = did_you_mean(re.split("[ =]", unknown)[0], self._option_string_actions)
        raise CommandError(f"{message}{meant}: see {self.prog} --help")

    def option(self, names: str, metavar: str | None, text: str, **more: Any) -> None:
        """Add an option: its names, how its value is shown (None for choices), and its help."""
        self.add_argument(*names.split(), metavar=metavar, help=text, **more)

    def repeatable(self, names: str, metavar: str, text: str, **more: Any) -> None:
        """Add an option that may be repeated; its value is a list."""
        self.option(names, metavar, text, action="append", default=[], **more)

    def flag(self, names: str, text: str) -> None:
        """Add an option without a value."""
        self.add_argument(*names.split(), action="store_true", help=text)


def say(*lines: str) -> None:
    """Write lines to standard output, with what a terminal or CI could take for commands shown."""
    sys.stdout.writelines(f"{safe_line(line)}\n" for line in lines)


def warn(*lines: str) -> None:
    """Write lines to standard error in the same way."""
    sys.stderr.writelines(f"{safe_line(line)}\n" for line in lines)


def write(path: Path, text: str, mode: int) -> None:
    """Write a text file with permissions.

    Raises:
        CommandError: It cannot be written.
    """
    try:
        write_file(path, text.encode(), mode=mode)
    except OSError as error:
        raise CommandError(f"cannot write {path}: {error.strerror}") from None


def folder_of_skill(path: Path) -> Path:
    """Return the folder of a skill that a path names: the folder itself, or its ``SKILL.md``.

    Raises:
        CommandError: There is none.
    """
    check_exists(path)
    folder = path.parent if path.is_file() else path
    if not (folder / "SKILL.md").is_file():
        raise no_skill(folder)
    return folder


def no_skill(folder: Path) -> CommandError:
    """Return the error for a folder without a ``SKILL.md``, with the skill that was meant."""
    around = (each for each in folder.absolute().parents if (each / "SKILL.md").is_file())
    if misnamed := misnamed_skills(folder):
        cure = f"rename {misnamed[0]} to SKILL.md"
    elif skill := next(chain(skill_folders(folder), around), None):
        cure = f"did you mean {skill}?"
    else:
        cure = "name the folder of a skill"
    return CommandError(f"{folder}: no SKILL.md in it: {cure}")


def misnamed_skills(folder: Path) -> list[Path]:
    """Return the files in a folder, and one below, that are named like ``SKILL.md``."""
    files = (*folder.glob("*.md"), *folder.glob("*/*.md"))
    return sorted(
        file for file in files if file.name != "SKILL.md" and file.name.lower() == "skill.md"
    )


def check_exists(path: Path) -> None:
    """Check that a path exists.

    Raises:
        CommandError: It does not; the message has the name beside it that was probably meant.
    """
    if not path.exists():
        wrong = path
        while not wrong.parent.exists():
            wrong = wrong.parent
        named = (skill for skill in skill_folders(Path()) if skill.name == str(path))
        meant = f" (did you mean {found}?)" if (found := next(named, None)) else ""
        meant = meant or did_you_mean(wrong.name, [each.name for each in wrong.parent.iterdir()])
        raise CommandError(f"{path}: no such file or folder{meant}: name a skill")


def own_cases(
    folder: Path, extensions: Extensions = NO_EXTENSIONS, discovery: CaseDiscovery | None = None
) -> tuple[list[Skill], list[str]]:
    """Read the case files of a skill, in its folder or elsewhere in the project.

    Args:
        folder: A folder with a ``SKILL.md``.
        extensions: What plugins add to the format.
        discovery: Where to search; None for one of its own.

    Returns:
        The skill once for each file or suite, with the cases in it; and the problems of files that
        cannot be read.
    """
    discovery = discovery or CaseDiscovery()
    skill_folder = os.path.normpath(folder.absolute())
    found: list[Skill] = []
    problems: list[str] = []
    for case_file in discovery.case_files_of(Path(skill_folder)):
        file = case_file if folder.is_absolute() else Path(os.path.relpath(case_file))
        try:
            skills = load_skills(file, shown=str(file), extensions=extensions, discovery=discovery)
        except SkillError as error:
            problems += str(error).splitlines()
            continue
        own = (each for each in skills if os.path.normpath(each.folder.absolute()) == skill_folder)
        found += [each for each in own if not each.broken]
    return pooled(found), problems


def load_skill(folder: Path, extensions: Extensions = NO_EXTENSIONS) -> Skill:
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
        return min(found, key=lambda skill: (skill.case_file.name != CASE_FILE, skill.case_file))
    try:
        return load_skills(folder / "SKILL.md", extensions=extensions)[0]
    except SkillError as error:
        raise problems_error(folder / "SKILL.md", str(error).splitlines()) from None
