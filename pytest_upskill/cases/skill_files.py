"""What of a skill's folder reaches a model.

Its text with the files that it names, or all its files, in the arm with the skill; and those that
cases give, in every arm.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path, PurePath, PurePosixPath

from pytest_upskill.cases import hidden_files
from pytest_upskill.cases.skill import Case, HiddenFiles, Skill
from pytest_upskill.cases.skill_md import SkillText, read_skill_text
from pytest_upskill.cases.source.document import BadFile, Problem
from pytest_upskill.cases.source.files import (
    MAX_TOTAL_BYTES,
    BinaryError,
    Unreadable,
    read_folder,
    read_inside,
    read_text,
    read_text_inside,
    stay_inside,
)
from pytest_upskill.checks.files import MAX_BYTES, WorkspaceFile, is_safe_name
from pytest_upskill.project.files import is_inside, real_name

# A line with a suffix, which every path has: a search for it first is many times faster.
_LINE = re.compile(r"^.*\.\w.*$", re.MULTILINE)
# A path relative to the skill's folder, but not the end of a URL or a word of a sentence.
_PATH = re.compile(
    r"(?:(?<![\w/.:@~-])|(?<=\}/))(?:\./)?(?P<path>(?:\.\./)*\w[\w.-]*(?:/[\w.-]+)*\.\w+)"
)
_CONFLICT = re.compile(r"^<{7} .*\n(?:.*\n)*?={7}\n(?:.*\n)*?>{7} ", re.MULTILINE)
_TEXT = frozenset({".md", ".txt"})
"""Suffixes of documents."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bundle:
    """The text of a skill in the context."""

    text: str
    """The ``SKILL.md``, then every file between two tags, in the order of first mention."""
    names: tuple[str, ...] = ()
    """The names of these files."""
    warnings: tuple[Problem, ...]
    """Files that the ``SKILL.md`` names but that are left out."""


def read_bundle(folder: Path, skill: SkillText, hidden: HiddenFiles) -> Bundle:
    """Read the files in a skill's folder that its body names, such as ``references/api.md``.

    Files that these name in turn are not read: the specification recommends references one
    level deep.

    Args:
        folder: The skill's folder.
        skill: Its ``SKILL.md``.
        hidden: Which files of the folder hold answers.
    """
    parts: dict[str, str] = {}
    names = _names(skill)
    warnings = [*_missing_references(folder, skill, names)]
    left = MAX_TOTAL_BYTES

    def leave_out(at: int, why: str, *, is_hint: bool = False) -> None:
        problem = Problem.in_text(skill.text, at, f"left out of the context: {why}")
        warnings.append(replace(problem, is_hint=is_hint))

    for name, at in _named_files(folder, names, hidden):
        if hidden_files.has_shape_of_cases(folder / name):
            what = f"{name!r} reads as a case file, and no model may see its answers"
            leave_out(at, what, is_hint=True)
            continue
        try:
            content = read_text_inside(folder, folder / name, shown=name)
        except Unreadable as error:
            if not _is_expected(error, folder, name):
                leave_out(at, str(error))
            continue
        left -= len(content.encode())
        if left < 0:
            leave_out(at, f"with {name!r} it would exceed {MAX_TOTAL_BYTES >> 10} KiB")
            break
        parts[name] = f'\n\n<file name="{name}">\n{content.rstrip()}\n</file>'
    text, entries = hidden_files.without_cases(skill, folder)
    for entry in entries:
        what = f"{entry['key']!r} reads as cases, and no model may see their answers"
        leave_out(entry.start(), what, is_hint=True)
    text = text.rstrip() + "".join(parts.values()) if parts else text
    return Bundle(text=text, names=tuple(parts), warnings=tuple(warnings))


def version_in(folder: Path, skill: Skill) -> Skill:
    """Return a skill with its text and files as they are in a folder.

    Raises:
        BadFile: Its ``SKILL.md`` cannot be used.
        Unreadable: Its folder cannot be installed for an agent.
    """
    text = read_skill_text(read_text(folder / "SKILL.md"), folder=skill.folder.absolute().name)
    return replace(
        skill,
        name=text.name,
        text=read_bundle(folder, text, skill.hidden_files).text,
        files=installed_files(folder, skill.hidden_files) if skill.files else (),
        description=text.description,
    )


def with_files(skill: Skill) -> Skill:
    """Return a skill with the files of its folder, as an agent would find them installed.

    Raises:
        Unreadable: The folder is too large, or a file in it cannot be read or has an odd name.
    """
    try:
        return replace(skill, files=installed_files(skill.folder, skill.hidden_files))
    except Unreadable as error:
        what = f"{skill.folder.name}: cannot be installed for an agent: {error}"
        raise Unreadable(what) from None


def installed_files(folder: Path, hidden: HiddenFiles) -> tuple[WorkspaceFile, ...]:
    """Read the files of a skill that are installed for agents.

    Args:
        folder: The folder of the skill, or of an earlier version of it.
        hidden: Which of its files are not installed.

    Raises:
        Unreadable: The folder is too large, or a file in it cannot be read or has an odd name.
    """
    files = read_folder(
        folder,
        shown=hidden.folder.name or folder.name,
        is_excluded=lambda name: not hidden_files.may_be_installed(folder, name, hidden),
        # It is installed with its fonts and pictures.
        max_bytes=16 << 20,
    )
    return tuple(_without_cases(file, folder) for file in files)


def _without_cases(file: WorkspaceFile, folder: Path) -> WorkspaceFile:
    if file.name == "SKILL.md":
        with suppress(BadFile):
            skill = read_skill_text(file.prompt, folder=folder.name)
            text, entries = hidden_files.without_cases(skill, folder)
            if entries:
                return replace(file, text=text)
    return file


def _is_expected(error: Unreadable, folder: Path, name: str) -> bool:
    """Return whether a file is a picture or the like, or in the folder of another skill."""
    if isinstance(error, BinaryError):
        return PurePosixPath(name).suffix not in _TEXT
    above = Path(os.path.normpath(folder.absolute() / name)).parents
    others = (each for each in above if not folder.absolute().is_relative_to(each))
    return any((other / "SKILL.md").exists() for other in others)


def _missing_references(
    folder: Path, skill: SkillText, names: Mapping[str, int]
) -> Iterator[Problem]:
    for name, at in names.items():
        if name.startswith("references/") and not (folder / name).exists():
            yield replace(Problem.in_text(skill.text, at, f"there is no {name}"), is_hint=True)


def conflicts_in(skill: SkillText) -> Iterator[Problem]:
    """Yield the conflicts that a merge has left in a ``SKILL.md``, except in examples."""
    for conflict in _CONFLICT.finditer(skill.text, skill.body_at):
        if skill.text.count("\n```", 0, conflict.start()) % 2 == 0:
            what = "a merge conflict: keep one of the two versions"
            yield Problem.in_text(skill.text, conflict.start(), what)


def _names(skill: SkillText) -> Mapping[str, int]:
    """Return what the body says that can be names of files, each with its first offset."""
    found: dict[str, int] = {}
    for line in _LINE.finditer(skill.text, skill.body_at):
        for match in _PATH.finditer(skill.text, *line.span()):
            found.setdefault(PurePosixPath(match["path"]).as_posix(), match.start())
    return found


def _named_files(
    folder: Path, names: Mapping[str, int], hidden: HiddenFiles
) -> Iterator[tuple[str, int]]:
    """Yield the names of existing files, each with the offset of its first mention."""
    for name, at in names.items():
        if name.startswith("../") and is_inside(folder / name, folder):
            continue
        is_other = name.casefold() != "skill.md" and (folder / name).is_file()
        if is_other and not hidden_files.is_hidden_by_place(folder, name, hidden):
            yield name, at


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
        self._homes = [folder, *folder_of_cases(case_file, folder)]
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
                relative to the folder of the case file, then to the folders above both, and to
                their ``fixtures``.
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

    def read_copies(self, name: str, source: str) -> tuple[WorkspaceFile, ...]:
        """Read the file or all files of the folder that a case copies, under another name.

        Args:
            name: The new name; "" for what is in a folder, or for the file's own name.
            source: As of `read_files`, which may raise.
        """
        source = source.removeprefix("./").rstrip("/")
        copies = []
        for file in self.read_files(source):
            copy = PurePosixPath(name, PurePosixPath(file.name).relative_to(source))
            new = str(copy) if copy.name else PurePosixPath(source).name
            copies.append(replace(file, name=new))
        return tuple(copies)

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
        fixtures = [folder / "fixtures" for folder in above] if is_safe_name(name) else []
        for path in (folder / name for folder in (*found, *fixtures)):
            if path.exists() and self._home_of(path):
                return path
        is_above = not {*self.beside.parents[:_MOST_ABOVE]}.isdisjoint(found)
        if is_above and ".." not in PurePosixPath(name).parts:
            where = "the skill's folder and the cases' folder: copy it into the latter"
            raise Unreadable(f"{name!r} is outside both {where}")
        return self.folder / name

    def _home_of(self, path: Path) -> Path | None:
        return next((home for home in self._homes if is_inside(path, home)), None)

    def _is_kept_back(self, path: Path, shown: str) -> bool:
        """Return whether a file holds cases or is the skill's own, which is remembered."""
        real = _real(path)
        if not self._own.isdisjoint((real, *real.parents)):
            self.left_out.add(shown)
            return True
        name = os.path.relpath(path, self.folder)
        return hidden_files.is_named_or_shaped_as_cases(self.folder, name, self._hidden)


def folder_of_cases(case_file: Path, skill: Path) -> list[Path]:
    """Return the folder of the cases and their input files, none if the skill is inside it."""
    above = [
        each for each in case_file.parents[:_MOST_ABOVE] if each.name in hidden_files.CASE_FOLDERS
    ]
    topmost = above[-1] if above else case_file.parent
    return [] if skill.is_relative_to(topmost) else [topmost]


def _real(path: Path) -> Path:
    """Return a path without links, in lower case: some file systems ignore case."""
    return Path(os.path.realpath(path).casefold())
