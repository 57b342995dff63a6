"""The files that cases give to a model, in every arm: never the skill, never the answers."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path, PurePath, PurePosixPath

from pytest_upskill.cases.case_files import reads_as_cases
from pytest_upskill.cases.skill import Case, HiddenFiles
from pytest_upskill.cases.source.files import Unreadable, read_folder, read_inside, stay_inside
from pytest_upskill.checks.files import MAX_BYTES, MAX_FILES, WorkspaceFile
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
                or the files are too large or over `MAX_FILES`.
        """
        path = self._find(name)
        home = _enclosing_folder(path, self._homes) or self.folder
        stay_inside(path, home, shown=name)
        if not path.is_dir():
            if not self._is_own(path, name) and self._holds_cases(path):
                raise Unreadable(f"{name!r} is a case file, and no model may see its answers")
            inner = {name: path}
        else:
            inner = {
                (PurePosixPath(name) / file.relative_to(path).as_posix()).as_posix(): file
                for file in sorted(path.rglob("*"))
                if not file.is_dir() and not self._holds_cases(file)
            }
        given = {shown: file for shown, file in inner.items() if not self._is_own(file, shown)}
        if len(given) > MAX_FILES:
            raise Unreadable(f"{name!r} contains over {MAX_FILES:,} files")
        self._note(given.values())
        read = tuple(
            WorkspaceFile.of(shown, read_inside(home, file, max_bytes, shown=shown))
            for shown, file in given.items()
        )
        if sum(len(file.content) for file in read) > max_bytes:
            raise Unreadable(f"{name!r} is larger than {max_bytes >> 20} MiB")
        return read

    def workspace(self, name: str) -> tuple[WorkspaceFile, ...]:
        """Read the folder that a case names as the workspace of agents.

        Args:
            name: A path relative to the folder of the case file.

        Raises:
            ValueError: It is no folder inside that one, or it holds what a workspace must not.
        """
        folder = self.beside / name
        if not is_inside(folder, self.beside):
            raise ValueError(f"{name!r} leads outside the folder of the case file: move it inside")
        if not folder.is_dir():
            raise ValueError(f"{name!r} is not a folder beside the case file")
        found = read_folder(
            folder,
            is_excluded=lambda inner: (
                self._is_own(folder / inner, inner) or self._holds_cases(folder / inner)
            ),
        )
        if not found:
            raise ValueError(f"{name!r} contains no files but those of the skill and its cases")
        self._note(folder / file.name for file in found)
        return found

    def _find(self, name: str) -> Path:
        """Return the path that a name means; it may not exist."""
        if name == ".":
            return self.beside
        if not (self.folder / name).exists():
            for above in (self.beside, *self.beside.parents, *self.folder.parents):
                path = above / name
                if path.exists() and _enclosing_folder(path, self._homes):
                    return path
        return self.folder / name

    def _is_own(self, path: Path, shown: str) -> bool:
        """Return whether a file is the skill's own, and remember it."""
        real = _real(path)
        is_own = not self._own.isdisjoint((real, *real.parents))
        if is_own:
            self.left_out.add(shown)
        return is_own

    def _holds_cases(self, path: Path) -> bool:
        return reads_as_cases(self.folder, os.path.relpath(path, self.folder), self._hidden)

    def _note(self, files: Iterable[Path]) -> None:
        """Remember which files of the skill's folder are inputs."""
        self.read.update(real_name(file, self.folder) for file in files)


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


def _enclosing_folder(path: Path, homes: Iterable[Path]) -> Path | None:
    return next((home for home in homes if is_inside(path, home)), None)
