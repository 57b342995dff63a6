"""The files that cases give to a model, in every arm: never the skill, never the answers."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path, PurePath, PurePosixPath

from pytest_upskill.cases.hidden_files import reads_as_cases
from pytest_upskill.cases.skill import Case, HiddenFiles
from pytest_upskill.cases.source.files import Unreadable, read_folder, read_inside, stay_inside
from pytest_upskill.checks.files import MAX_BYTES, WorkspaceFile
from pytest_upskill.project.files import is_inside, real_name

_OF_SKILL = frozenset({"skill.md", "references", "scripts"})
"""What belongs to a skill in its folder, in lower case, even if its text does not name it."""


class CaseInputs:
    """Reader of the files that the cases of a skill name.

    The skill's own files are left out: they would give the skill to the arm without it. So are
    files with answers.

    Args:
        folder: The skill's folder.
        beside: Folder of the case file.
        of_cases: Folder of the cases if it is outside ``folder``; its files can be read too.
        in_context: Names of the files that the skill's text puts into the context.
        hidden: Which files hold answers.

    Attributes:
        left_out: Names of the skill's own files that cases name.
        read: Names of the files that were read, relative to the skill's folder.
    """

    def __init__(
        self,
        folder: Path,
        *,
        beside: Path,
        of_cases: Path | None = None,
        in_context: Iterable[str] = (),
        hidden: HiddenFiles | None = None,
    ) -> None:
        self.folder = folder
        self.beside = beside
        self.left_out: set[str] = set()
        self.read: set[str] = set()
        self._homes = [folder] if of_cases is None else [folder, of_cases]
        self._hidden = hidden or HiddenFiles(folder=folder)
        self._in_context = in_context

    @cached_property
    def _own(self) -> frozenset[Path]:
        """The skill's own files and folders."""
        in_folder = os.listdir(self.folder) if self.folder.is_dir() else []  # noqa: PTH208  names
        own = [name for name in in_folder if name.casefold() in _OF_SKILL]
        return frozenset(_real(self.folder / name) for name in (*own, *self._in_context))

    def files(self, name: str, max_bytes: int = MAX_BYTES) -> tuple[WorkspaceFile, ...]:
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
            self.read.update(real_name(path / file.name, self.folder) for file in found)
            return tuple(replace(file, name=str(above / file.name)) for file in found)
        if self._is_kept_back(path, name):
            if name in self.left_out:
                return ()
            raise Unreadable(f"{name!r} is a case file, and no model may see its answers")
        self.read.add(real_name(path, self.folder))
        return (WorkspaceFile.of(name, read_inside(home, path, max_bytes, shown=name)),)

    def _find(self, name: str) -> Path:
        """Return the path that a name means; it may not exist."""
        if name == ".":
            return self.beside
        if not (self.folder / name).exists():
            for above in (self.beside, *self.beside.parents, *self.folder.parents):
                path = above / name
                if path.exists() and self._home_of(path):
                    return path
        return self.folder / name

    def _home_of(self, path: Path) -> Path | None:
        return next((home for home in self._homes if is_inside(path, home)), None)

    def _is_kept_back(self, path: Path, shown: str) -> bool:
        """Return whether a file holds cases or is the skill's own, which is remembered."""
        real = _real(path)
        if not self._own.isdisjoint((real, *real.parents)):
            self.left_out.add(shown)
            return True
        return reads_as_cases(self.folder, os.path.relpath(path, self.folder), self._hidden)


def without_copies(case: Case, skill_text: str) -> tuple[Case, Sequence[str]]:
    """Return a case without the files that are copies of a ``SKILL.md``, and their names."""
    lines = skill_text.split()
    copies = [file for file in (*case.files, *case.workspace) if file.text.split() == lines]
    if not copies:
        return case, ()
    files = tuple(file for file in case.files if file not in copies)
    workspace = tuple(file for file in case.workspace if file not in copies)
    return replace(case, files=files, workspace=workspace), [file.name for file in copies]


def answers_in(folder: Path, beside: Path, names: Iterable[str]) -> frozenset[str]:
    """Return those of some files with answers that are in a skill's folder, relative to it.

    Args:
        folder: The skill's folder.
        beside: Folder of the case file.
        names: Names relative to either folder; other texts are ignored.
    """
    paths = (os.path.join(above, name) for name in names for above in (beside, folder))  # noqa: PTH118  may be no path
    found = {real_name(Path(path), folder) for path in paths if os.path.isfile(path)}  # noqa: PTH113
    return frozenset(
        name for name in found if PurePath(name.casefold()).parts[0] not in {"..", *_OF_SKILL}
    )


def _real(path: Path) -> Path:
    """Return a path without links, in lower case: some file systems ignore case."""
    return Path(os.path.realpath(path).casefold())
