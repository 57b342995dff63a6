"""Discovery of case files: which files hold cases, and which skill each one belongs to."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from pytest_upskill import CASE_FILE, EVALS_FILES
from pytest_upskill.formats.evals.named_skills import (
    has_owners,
    name_of_all,
    names_of_cases,
    start_of,
    title_of,
)
from pytest_upskill.formats.evals.owner import plain_name
from pytest_upskill.formats.source.problems import BadFile
from pytest_upskill.formats.source.text import MAX_BYTES, read_text

_CASE_FOLDERS = frozenset(
    {"evals", "eval", "evaluations", "tests", "test", "testing", "benchmark", "benchmarks"}
)
"""Names of folders that hold the cases of the skills beside them."""

_INSIDE = re.compile(
    rf"(modes/[^/]+/)?((({'|'.join(sorted(_CASE_FOLDERS))})/)([^/]+/){{0,2}})?|references/"
)
"""Folders inside a skill's folder that may hold its cases."""

_MAY_HOLD = (
    *("*", "references/*", "modes/*/*"),
    *(f"{name}/{deep}*" for name in sorted(_CASE_FOLDERS) for deep in ("", "*/", "*/*/")),
)
"""Files that may hold cases of a skill, relative to its folder or to one above."""

_PLAIN_HOMES = ("skills", ".claude/skills", ".agents/skills", ".github/skills")
_HOMES = (".", *_PLAIN_HOMES, "plugins/*/skills", "skills/*", "*/skills")
"""Folders of skills, relative to a folder with shared cases; a star stands for any folder."""

_MOST_ABOVE = 6
"""How many folders above a case file are searched for its skill in a git repository."""

_MOST_WITHOUT_GIT = 4
"""The same outside a git repository, when no project root is given."""

_GENERIC = re.compile(
    r"(cases|test[-_]prompts|triggers?([-_](tests?|cases|corpus|prompts|queries|set))?|(.+[-_.])?evals?([-_]?(\d+|all|cases|full|queries|set))?)\.(jsonl?|ya?ml)",
    re.IGNORECASE,
)
"""Names that files without cases may have too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """The places in which a project keeps its skills and cases; each is searched once."""

    root: Path | None = None
    """Topmost folder to search for skills outside a git repository; None for no such limit."""
    patterns: tuple[str, ...] = ()
    """Further patterns of case file names, such as ``checks/*.json``."""
    owners: tuple[tuple[str, Path], ...] = ()
    """Patterns of case files, each with the folder of the skill that they belong to."""
    _skills: dict[Path, Mapping[Path, str]] = field(default_factory=dict, compare=False)
    """The folders of the skills below a folder, with the plain names in their ``SKILL.md``."""
    _with_cases: dict[Path, set[Path]] = field(default_factory=dict, compare=False)
    """The folders of the skills with cases in or below a folder."""

    def may_hold_cases(self, path: Path) -> bool:
        """Return whether a file has the name of a case file."""
        return path.name == CASE_FILE or self._is_named(path) or bool(_GENERIC.fullmatch(path.name))

    def is_case_file(self, path: Path) -> bool:
        """Return whether a file for which `may_hold_cases` is true holds cases of a skill."""
        if path.name == CASE_FILE:
            return True
        # Near a skill, the name or the content is enough. Elsewhere a file needs both, and the
        # reader then reports that its skill is missing.
        if self.owning_skill(path) or any(self.named_near(path)):
            return self._is_named(path) or _holds_cases(path)
        return self._is_named(path) and _holds_cases(path)

    def owning_skill(self, case_file: Path) -> Path | None:
        """Return the folder of the skill that a case file belongs to, None if there is none.

        It is the skill that `owners` gives; else the one whose folder contains the file in a place
        for cases; else the one that a folder of cases or the file itself names, or whose name the
        file's folder has; else the only one nearby.
        """
        if case_file.name in {CASE_FILE, "SKILL.md"}:
            return case_file.parent
        if owner := next((skill for one, skill in self.owners if case_file.match(one)), None):
            return owner
        named = name_of_all(case_file)
        if enclosing := _enclosing_skill(case_file):
            own = {"", plain_name(enclosing.name), plain_name(title_of(enclosing))}
            other = plain_name(named) not in own and self.find_skill(named, case_file)
            return other or enclosing
        return (
            self._of_path(case_file)
            or self.find_skill(named, case_file)
            or self.find_skill(case_file.parent.name, case_file)
            or self._only(case_file)
        )

    def find_skill(self, name: str, case_file: Path) -> Path | None:
        """Return the folder of the skill with a given name near a case file, None if there is none.

        Of several skills with that name, it is the one whose path shares the most folders with
        the path of the case file. On a tie it is None, unless their texts are identical.
        """
        wanted = plain_name(name)
        for top in self._tops(case_file) if wanted else ():
            skills = self._skills_below(top)
            found = [folder for folder in skills if plain_name(folder.name) == wanted]
            found = found or [folder for folder, title in skills.items() if title == wanted]
            if found:
                return _closest(found, {*case_file.parts, *name.split("/")})
        return None

    def named_near(self, case_file: Path) -> Iterator[Path]:
        """Yield the folders of the skills that the cases in a file name."""
        found = (self.find_skill(name, case_file) for name in names_of_cases(case_file))
        return filter(None, found)

    def has_cases(self, folder: Path) -> bool:
        """Return whether any case file belongs to the skill in ``folder``."""
        return any(folder in self._with_cases_of(top) for top in (folder, *self._tops(folder)))

    def _is_named(self, path: Path) -> bool:
        """Return whether a file has a name that only files of cases have."""
        return path.name in EVALS_FILES or any(map(path.match, self.patterns))

    def _of_path(self, case_file: Path) -> Path | None:
        """Return the skill that a parent folder names, as in ``evals/csv/evals.json``."""
        above = case_file.parents[: _MOST_ABOVE - 1]
        for index, folder in enumerate(above):
            if folder.name not in _CASE_FOLDERS:
                is_below = any(each.name in _CASE_FOLDERS for each in above[index + 1 : index + 3])
                return self.find_skill(folder.name, case_file) if is_below else None
        return None

    def _only(self, case_file: Path) -> Path | None:
        """Return the only skill near a file, unless the file or its folder could mean another."""
        folder = case_file.parent
        top = folder.parent if folder.name in _CASE_FOLDERS else folder
        if (top / "skill" / "SKILL.md").exists():
            return top / "skill"
        if has_owners(case_file) or (folder == top and case_file.name not in EVALS_FILES):
            return None
        skills = list(self._skills_below(top))
        if folder == top:
            homes = {top / home for home in _PLAIN_HOMES}
            skills = [skill for skill in skills if skill.parent in homes]
        return skills[0] if len(skills) == 1 else None

    def _tops(self, path: Path) -> Sequence[Path]:
        """Return the folders above a path, up to the root of its repository or project."""
        above = path.parents[:_MOST_ABOVE]
        for index, folder in enumerate(above):
            if (folder / ".git").exists():
                return above[: index + 1]
        if self.root in above:
            return above[: above.index(self.root) + 1]
        return above[:_MOST_WITHOUT_GIT]

    def _skills_below(self, top: Path) -> Mapping[Path, str]:
        """Return the skills below a folder, in any of the usual folders of skills."""
        if top not in self._skills:
            found = {folder for home in _HOMES for folder in _skills_in(top, home)}
            self._skills[top] = {folder: plain_name(title_of(folder)) for folder in sorted(found)}
        return self._skills[top]

    def _with_cases_of(self, top: Path) -> set[Path]:
        """Return the skills to which the case files in and below a folder belong."""
        if top not in self._with_cases:
            files = (file for pattern in _MAY_HOLD for file in top.glob(pattern))
            self._with_cases[top] = {skill for file in files for skill in self._owners_of(file)}
        return self._with_cases[top]

    def _owners_of(self, file: Path) -> Iterator[Path]:
        if self.may_hold_cases(file) and file.is_file() and self.is_case_file(file):
            if skill := self.owning_skill(file):
                yield skill
            yield from self.named_near(file)


def folder_of_cases(case_file: Path, skill: Path) -> Path | None:
    """Return the folder of the cases and their input files, None if the skill is inside it.

    Args:
        case_file: The case file.
        skill: Folder of the skill that the cases belong to.
    """
    above = case_file.parents[:_MOST_WITHOUT_GIT]
    named = [folder for folder in above if folder.name in _CASE_FOLDERS]
    folder = named[-1] if named else case_file.parent
    return None if skill.is_relative_to(folder) else folder


def _holds_cases(path: Path) -> bool:
    # Imported late: slow, and most case files are recognized by their names.
    from pytest_upskill.formats.evals.reader import holds_cases

    with suppress(OSError, BadFile):
        if path.stat().st_size <= MAX_BYTES:
            return holds_cases(read_text(path), suffix=path.suffix)
        # Too large for the reader, which then says so; only of lines, the first ones can tell.
        if path.suffix == ".jsonl":
            return holds_cases(start_of(path).rpartition("\n")[0], suffix=path.suffix)
    return False


def _enclosing_skill(case_file: Path) -> Path | None:
    """Return the skill whose folder contains the file, if the file is in a place for cases."""
    for folder in case_file.parents[:_MOST_ABOVE]:
        if (folder / "SKILL.md").exists():
            below = case_file.parent.relative_to(folder).as_posix()
            return folder if _INSIDE.fullmatch(f"{below}/".removeprefix("./")) else None
    return None


def _skills_in(top: Path, home: str) -> Iterator[Path]:
    """Yield the folders of the skills in ``home``, a pattern relative to ``top``."""
    with suppress(OSError):
        yield from (path.parent for path in top.glob(f"{home}/*/SKILL.md"))


def _closest(folders: Sequence[Path], parts: set[str]) -> Path | None:
    shared = {folder: len(parts.intersection(folder.parts)) for folder in sorted(folders)}
    most = max(shared.values())
    first, *others = (folder for folder in shared if shared[folder] == most)
    text = (first / "SKILL.md").read_bytes() if others else b""
    same = all((other / "SKILL.md").read_bytes() == text for other in others)
    return first if same else None
