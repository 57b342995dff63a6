"""Discovery of case files: which files hold cases, and which skill each one belongs to.

pytest asks `CaseDiscovery` about each file that it comes across; `load.py` then reads the cases.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from pytest_upskill import CASE_FILE, EVALS_FILES
from pytest_upskill.formats.evals.named_skills import (
    has_owners,
    names_of_cases,
    skill_named_at_top,
    start_of,
    title_of,
)
from pytest_upskill.formats.evals.owner import plain_name
from pytest_upskill.formats.skill_search import (
    MOST_ABOVE,
    MOST_WITHOUT_GIT,
    PLAIN_HOMES,
    SkillSearch,
)
from pytest_upskill.formats.source.problems import BadFile
from pytest_upskill.formats.source.text import read_text
from pytest_upskill.repository.files import MAX_TEXT_BYTES

_CASE_FOLDERS = frozenset(
    {"evals", "eval", "evaluations", "tests", "test", "testing", "benchmark", "benchmarks"}
)
"""Names of folders that hold the cases of the skills beside them."""

_CASE_SUBFOLDERS = re.compile(
    rf"(modes/[^/]+/)?((({'|'.join(sorted(_CASE_FOLDERS))})/)([^/]+/){{0,2}})?|references/"
)
"""Folders inside a skill's folder that may hold its cases."""

_CASE_FILE_PATTERNS = (
    *("*", "references/*", "modes/*/*"),
    *(f"{name}/{deep}*" for name in sorted(_CASE_FOLDERS) for deep in ("", "*/", "*/*/")),
)
"""Files that may hold cases of a skill, relative to its folder or to one above."""

_AMBIGUOUS_NAME = re.compile(
    r"(cases|test[-_]prompts|triggers?([-_](tests?|cases|corpus|prompts|queries|set))?|(.+[-_.])?evals?([-_]?(\d+|all|cases|full|queries|set))?)\.(jsonl?|ya?ml)",
    re.IGNORECASE,
)
"""Names of case files that files without cases may have too."""


class CaseDiscovery:
    """Decides which files hold cases, and which skill they belong to; reads each folder once.

    Args:
        root: Topmost folder to search for skills outside a git repository; None for no such limit.
        patterns: Further patterns of case file names, such as ``checks/*.json``.
        owners: Patterns of case files, each with the folder of the skill that they belong to.
    """

    def __init__(
        self,
        *,
        root: Path | None = None,
        patterns: tuple[str, ...] = (),
        owners: tuple[tuple[str, Path], ...] = (),
    ) -> None:
        self.root = root
        self._patterns = patterns
        self._owners = owners
        self._search = SkillSearch(root)
        self._skills_with_cases: dict[Path, set[Path]] = {}
        """The folders of the skills that have cases in or below a folder."""

    def is_case_file(self, path: Path) -> bool:
        """Return whether a file holds cases of a skill.

        It depends on the file's name, and on whether it is near a skill:

        | name                                 | near a skill          | elsewhere             |
        |--------------------------------------|-----------------------|-----------------------|
        | ``skill_meta.json``                  | yes                   | yes                   |
        | ``evals.json``, one of `patterns`    | yes                   | if it contains cases  |
        | ambiguous, such as ``triggers.yaml`` | if it contains cases  | no                    |
        """
        if path.name == CASE_FILE:
            return path.is_file()
        is_certain = path.name in EVALS_FILES or any(map(path.match, self._patterns))
        if not (is_certain or _AMBIGUOUS_NAME.fullmatch(path.name)) or not path.is_file():
            return False
        # Elsewhere, the reader reports that the skill of a certain file is missing.
        is_near_skill = self.owning_skill(path) is not None or any(self._named_skills(path))
        if is_certain and is_near_skill:
            return True
        return (is_certain or is_near_skill) and _contains_cases(path)

    def owning_skill(self, case_file: Path) -> Path | None:
        """Return the folder of the skill that a case file belongs to, None if there is none.

        The first rule that gives a skill decides:

        1. A ``skill_meta.json`` belongs to the folder that it is in.
        2. `owners` has a pattern for the file.
        3. The file is in a skill's folder, in a place for cases. It belongs to that skill, unless
           a key at its top names another skill that exists.
        4. A folder among those of cases has the skill's name: ``evals/csv/evals.json``.
        5. A key at the top of the file names the skill.
        6. The file's folder has the skill's name.
        7. It is the only skill nearby.
        """
        if case_file.name in {CASE_FILE, "SKILL.md"}:
            return case_file.parent
        for pattern, skill in self._owners:
            if case_file.match(pattern):
                return skill
        name_in_file = skill_named_at_top(case_file)
        if enclosing := _enclosing_skill(case_file):
            if not name_in_file or _is_name_of(enclosing, name_in_file):
                return enclosing
            return self.find_skill(name_in_file, case_file) or enclosing
        return (
            self._skill_of_subfolder(case_file)
            or self.find_skill(name_in_file, case_file)
            or self.find_skill(case_file.parent.name, case_file)
            or self._only_skill_near(case_file)
        )

    def find_skill(self, name: str, case_file: Path) -> Path | None:
        """Return the folder of the skill with a given name near a case file; see `SkillSearch`."""
        return self._search.find(name, case_file)

    def skill_has_cases(self, skill: Path) -> bool:
        """Return whether any case file belongs to the skill in the folder ``skill``."""
        folders = (skill, *self._search.search_roots(skill))
        return any(skill in self._skills_with_cases_in(top) for top in folders)

    def _named_skills(self, case_file: Path) -> Iterator[Path]:
        """Yield the folders of the skills that the cases in a file name."""
        skills = (self.find_skill(name, case_file) for name in names_of_cases(case_file))
        return filter(None, skills)

    def _skill_of_subfolder(self, case_file: Path) -> Path | None:
        """Return the skill that a folder among those of cases names: ``evals/csv/evals.json``."""
        above = case_file.parents[: MOST_ABOVE - 1]
        subfolder = next((folder for folder in above if folder.name not in _CASE_FOLDERS), None)
        if subfolder is None:
            return None
        is_among_cases = any(folder.name in _CASE_FOLDERS for folder in subfolder.parents[:2])
        return self.find_skill(subfolder.name, case_file) if is_among_cases else None

    def _only_skill_near(self, case_file: Path) -> Path | None:
        """Return the only skill near a file, unless the file or its folder could mean another."""
        folder = case_file.parent
        is_in_case_folder = folder.name in _CASE_FOLDERS
        top = folder.parent if is_in_case_folder else folder
        if (top / "skill" / "SKILL.md").exists():
            return top / "skill"
        if has_owners(case_file):
            return None
        skills = list(self._search.skills_below(top))
        if not is_in_case_folder:
            if case_file.name not in EVALS_FILES:
                return None
            homes = {top / home for home in PLAIN_HOMES}
            skills = [skill for skill in skills if skill.parent in homes]
        return skills[0] if len(skills) == 1 else None

    def _skills_with_cases_in(self, top: Path) -> set[Path]:
        """Return the skills to which the case files in and below a folder belong."""
        if top not in self._skills_with_cases:
            files = {file for pattern in _CASE_FILE_PATTERNS for file in top.glob(pattern)}
            self._skills_with_cases[top] = {
                skill
                for file in files
                if self.is_case_file(file)
                for skill in (self.owning_skill(file), *self._named_skills(file))
                if skill is not None
            }
        return self._skills_with_cases[top]


def folder_of_cases(case_file: Path, skill: Path) -> Path | None:
    """Return the folder of the cases and their input files, None if the skill is inside it.

    Args:
        case_file: The case file.
        skill: Folder of the skill that the cases belong to.
    """
    above = case_file.parents[:MOST_WITHOUT_GIT]
    case_folders = [folder for folder in above if folder.name in _CASE_FOLDERS]
    topmost = case_folders[-1] if case_folders else case_file.parent
    return None if skill.is_relative_to(topmost) else topmost


def _contains_cases(path: Path) -> bool:
    # Imported late: slow, and most case files are recognized by their names.
    from pytest_upskill.formats.evals.reader import holds_cases

    with suppress(OSError, BadFile):
        if path.stat().st_size <= MAX_TEXT_BYTES:
            return holds_cases(read_text(path), suffix=path.suffix)
        # Too large for the reader, which then says so; only of lines, the first ones can tell.
        if path.suffix == ".jsonl":
            complete_lines = start_of(path).rpartition("\n")[0]
            return holds_cases(complete_lines, suffix=path.suffix)
    return False


def _is_name_of(skill: Path, name: str) -> bool:
    """Return whether a name, however it is written, is that of the skill in a folder."""
    return plain_name(name) in {plain_name(skill.name), plain_name(title_of(skill))}


def _enclosing_skill(case_file: Path) -> Path | None:
    """Return the skill whose folder contains the file, if the file is in a place for cases."""
    for folder in case_file.parents[:MOST_ABOVE]:
        if (folder / "SKILL.md").exists():
            below = case_file.parent.relative_to(folder).as_posix()
            return folder if _CASE_SUBFOLDERS.fullmatch(f"{below}/".removeprefix("./")) else None
    return None
