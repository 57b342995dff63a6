"""A skill's folder as cases see it, and the files of it that they give to a model, in every arm."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace
from functools import cached_property
from pathlib import Path, PurePath, PurePosixPath

from pytest_upskill.cases.hidden_files import CASE_FOLDERS, is_named_or_shaped_as_cases
from pytest_upskill.cases.skill import Case, HiddenFiles
from pytest_upskill.cases.skill_files import Bundle, read_bundle
from pytest_upskill.cases.skill_md import SkillText
from pytest_upskill.cases.source.files import Unreadable, read_folder, read_inside, stay_inside
from pytest_upskill.checks.files import MAX_BYTES, WorkspaceFile
from pytest_upskill.project.files import is_inside, real_name

_OF_SKILL = frozenset({"skill.md", "references", "scripts"})
"""What belongs to a skill in its folder, in lower case, even if its text does not name it."""

_MOST_ABOVE = 4
"""How many folders above a case file may be one of cases."""


class SkillFolder:
    """A skill's folder, as the cases of one file see it.

    Cases can name files in it and beside them, but not the skill's own, which would give the skill
    to the arm without it, and not files with answers.

    Args:
        folder: The folder.
        text: Its ``SKILL.md``.
        case_file: The case file.
        patterns: Patterns of case files that the project lists.
        compared: Names of files with which cases compare answers, relative to the case file or to
            ``folder``; other texts are ignored.

    Attributes:
        left_out: Names of the skill's own files that cases name.
    """

    def __init__(
        self,
        folder: Path,
        text: SkillText,
        case_file: Path,
        *,
        patterns: tuple[str, ...] = (),
        compared: Iterable[str] = (),
    ) -> None:
        self.folder = folder
        self.text = text
        self.names = {text.name, folder.name}
        self.beside = case_file.parent
        self.left_out: set[str] = set()
        self._read: set[str] = set()
        self._homes = [folder, *_folder_of_cases(case_file, folder)]
        answers = self._in_folder([case_file.name, *compared])
        self._hidden = HiddenFiles(folder=folder, patterns=patterns, answers=answers)

    @cached_property
    def bundle(self) -> Bundle:
        """What its text puts into the context."""
        return read_bundle(self.folder, self.text, self._hidden)

    @property
    def hidden_files(self) -> HiddenFiles:
        """Which of its files no model may see, as far as the cases have been read."""
        return replace(self._hidden, inputs=frozenset(self._read))

    def read_files(self, name: str, max_bytes: int = MAX_BYTES) -> tuple[WorkspaceFile, ...]:
        """Read the file or all files of the folder that a case names, sorted by name.

        Args:
            name: A path relative to the skill's folder. If it does not exist there, it is tried
                relative to the folder of the case file, then to the folders above both.
            max_bytes: Maximum size of all files together.

        Raises:
            Unreadable: A file is missing, a case file or outside the folders of skill and cases,
                or there are too many files, or they are too large.
        """
        path = self._find(name)
        home = self._home_of(path) or self.folder
        stay_inside(path, home, shown=name)
        if path.is_dir():
            above = PurePosixPath(name)

            def is_kept_back(inner: str) -> bool:
                stay_inside(path / inner, home, shown=str(above / inner))
                return self._is_kept_back(path / inner, str(above / inner))

            found = read_folder(path, shown=name, is_excluded=is_kept_back, max_bytes=max_bytes)
            self._read.update(real_name(path / file.name, self.folder) for file in found)
            return tuple(replace(file, name=str(above / file.name)) for file in found)
        if self._is_kept_back(path, name):
            if name in self.left_out:
                return ()
            raise Unreadable(f"{name!r} is a case file, and no model may see its answers")
        self._read.add(real_name(path, self.folder))
        return (WorkspaceFile.of(name, read_inside(home, path, max_bytes, shown=name)),)

    def without_copies(self, case: Case) -> Case:
        """Return a case without the files that are copies of the ``SKILL.md``."""
        text = self.text.text.split()
        copies = {each for each in (*case.files, *case.workspace) if each.text.split() == text}
        self.left_out.update(copy.name for copy in copies)
        return replace(
            case,
            files=tuple(file for file in case.files if file not in copies),
            workspace=tuple(file for file in case.workspace if file not in copies),
        )

    def _in_folder(self, names: Iterable[str]) -> frozenset[str]:
        """Return those of some files that are in the folder, relative to it, but not its own."""
        above = (self.beside, self.folder)
        paths = (os.path.join(each, name) for name in names for each in above)  # noqa: PTH118  may be no path
        found = {real_name(Path(path), self.folder) for path in paths if os.path.isfile(path)}  # noqa: PTH113
        return frozenset(
            name for name in found if PurePath(name.casefold()).parts[0] not in {"..", *_OF_SKILL}
        )

    @cached_property
    def _own(self) -> frozenset[Path]:
        """The skill's own files and folders."""
        in_folder = os.listdir(self.folder) if self.folder.is_dir() else []  # noqa: PTH208  names
        own = [name for name in in_folder if name.casefold() in _OF_SKILL]
        return frozenset(_real(self.folder / name) for name in (*own, *self.bundle.names))

    def _find(self, name: str) -> Path:
        """Return the path that a name means; it may not exist.

        Raises:
            Unreadable: It exists only in a folder above that has other things too.
        """
        if name == ".":
            return self.beside
        if (self.folder / name).exists():
            return self.folder / name
        above = (self.beside, *self.beside.parents, *self.folder.parents)
        found = [folder for folder in above if (folder / name).exists()]
        for folder in found:
            if self._home_of(folder / name):
                return folder / name
        is_above = not {*self.beside.parents[:_MOST_ABOVE]}.isdisjoint(found)
        if is_above and ".." not in PurePosixPath(name).parts:
            what = (
                "is outside both the skill's folder and the cases' folder: copy it into the latter"
            )
            raise Unreadable(f"{name!r} {what}")
        return self.folder / name

    def _home_of(self, path: Path) -> Path | None:
        return next((home for home in self._homes if is_inside(path, home)), None)

    def _is_kept_back(self, path: Path, shown: str) -> bool:
        """Return whether a file holds cases or is the skill's own, which is remembered."""
        real = _real(path)
        if not self._own.isdisjoint((real, *real.parents)):
            self.left_out.add(shown)
            return True
        return is_named_or_shaped_as_cases(
            self.folder, os.path.relpath(path, self.folder), self._hidden
        )


def _folder_of_cases(case_file: Path, skill: Path) -> list[Path]:
    """Return the folder of the cases and their input files, none if the skill is inside it."""
    above = [each for each in case_file.parents[:_MOST_ABOVE] if each.name in CASE_FOLDERS]
    topmost = above[-1] if above else case_file.parent
    return [] if skill.is_relative_to(topmost) else [topmost]


def _real(path: Path) -> Path:
    """Return a path without links, in lower case: some file systems ignore case."""
    return Path(os.path.realpath(path).casefold())
