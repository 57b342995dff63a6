"""Discovery of case files: which files hold cases, and which skill each one belongs to.

pytest asks `CaseDiscovery` about each file that it comes across; `load.py` then reads the cases.
"""

import os
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

from pytest_upskill import CASE_FILE, STATE
from pytest_upskill.cases.adapters import registry
from pytest_upskill.cases.adapters.registry import Reading
from pytest_upskill.cases.hidden_files import CASE_FILE_PATTERNS, CASE_FOLDERS, CASE_SUBFOLDERS
from pytest_upskill.cases.skill import plain_name
from pytest_upskill.cases.source.document import BadFile
from pytest_upskill.cases.source.files import read_text, start_of

_PLAIN_HOMES = ("skills", ".claude/skills", ".agents/skills", ".github/skills")
_GROUPS = tuple(f"{home}/*" for home in _PLAIN_HOMES)
_HOMES = (".", "*", *_PLAIN_HOMES, *_GROUPS, "plugins/*/skills", "*/skills")
"""Folders of skills, relative to a folder above a case file; a star stands for any folder."""

_OF_CASES = re.compile(r"[-_.](evals?|cases|tests?|triggers?|routing|prompts|queries)(?![a-z]).*")
"""What the name of a case file may have after the name of its skill."""

_TRIGGERS_OF = re.compile(r"(?!(?:all|full|my|negative|positive|skill)[-_])(.+)[-_]triggers?[-_].*")
"""The name of a trigger list that begins with the name of a skill."""

_TITLE = re.compile(r"""^name:\s*["']?([^"'\n]+)""", re.MULTILINE)

_OWN_KEYS = re.compile(r"""\A\s*\[|"(?:cases|tests)"\s*:""")
"""What every ``skill_meta.json`` of ours has; games and others have files of that name too."""

_COPIED = re.compile(r"-workspace/(?:.*/)?(?:skill-snapshot[^/]*|iteration-[^/]*/.*outputs)/")
"""Folders of copies that skill-creator makes: of a skill, and of what an agent left."""

_NOT_SEARCHED = frozenset({".git", "node_modules", ".venv", "venv", "__pycache__", STATE})
"""Folders that are not searched for skills."""

_MOST_ABOVE = 6
"""How many folders above a case file are searched for its skill in a git repository."""

_MOST_WITHOUT_GIT = 4
"""The same outside a git repository, when no project root is given."""


@dataclass(eq=False, kw_only=True)
class CaseDiscovery:
    """Decides which files hold cases, and which skill they belong to; reads each folder once."""

    root: Path | None = None
    """Topmost folder to search for skills outside a git repository; None for no such limit."""
    patterns: tuple[str, ...] = ()
    """Further patterns of case file names, such as ``checks/*.json``."""
    owners: tuple[tuple[str, Path], ...] = ()
    """Patterns of case files, each with the folder of the skill that they belong to."""

    def __post_init__(self) -> None:
        self.owning_skill = cache(self._owning_skill)
        """Returns the folder of the skill that a case file belongs to, None if there is none."""
        # Case files are kept in memory between the search for them and their collection.
        self.reading = lru_cache(256)(self._reading)
        """Returns a case file as an adapter reads it; None if none fits. It raises BadFile."""
        self.skills_below = cache(_skills_below)
        self._case_files_in = cache(self._case_files_below)

    def is_case_file(self, path: Path) -> bool:
        """Return whether a file holds cases of a skill.

        | place of the file                        | near a skill    | elsewhere       |
        |------------------------------------------|-----------------|-----------------|
        | ``skill_meta.json``                      | yes             | with our keys   |
        | one of `patterns`                        | yes             | yes             |
        | certain for an adapter                   | yes             | if an adapter fits |
        | another place of an adapter              | if it fits      | no              |
        """
        if path.name in {CASE_FILE, "SKILL.md"}:
            has_skill = (path.parent / "SKILL.md").exists()
            return path.name == CASE_FILE and path.is_file() and (has_skill or _is_ours(path))
        if _is_copied(path.parent, self.root):
            return False
        is_certain = self._is_certain(path)
        if not (is_certain or registry.adapters_at(path)) or not path.is_file():
            return False
        try:
            reading = self.reading(path)
        except BadFile:
            return self._is_listed(path) or self.owning_skill(path) is not None
        # The reader reports what is wrong with a listed file.
        if reading is None:
            return is_certain and (self._is_listed(path) or self.owning_skill(path) is not None)
        # Elsewhere, it reports that the skill of a certain file is missing.
        return is_certain or any(self.skills_of(path))

    def _is_certain(self, path: Path) -> bool:
        return self._is_listed(path) or registry.is_certain(path)

    def _is_listed(self, path: Path) -> bool:
        return any(map(path.match, self.patterns))

    def _reading(self, path: Path) -> Reading | None:
        return registry.read(path, read_text(path), anywhere=self._is_certain(path))

    def _owning_skill(self, case_file: Path) -> Path | None:
        """Return what `owning_skill` does.

        The first rule that gives a skill decides:

        1. A ``skill_meta.json`` belongs to the folder that it is in.
        2. `owners` has a pattern for the file.
        3. The file is in a skill's folder, in a place for cases. It belongs to that skill, unless
           a key at its top names another skill that exists.
        4. A folder among those of cases has the skill's name: ``evals/csv/evals.json``.
        5. A key at the top of the file names the skill.
        6. The name of a file among cases begins with it, as ``evals/cases/csv.json`` does, or the
           file's folder has it.
        7. It is the only skill nearby, and the name of the file does not begin with another one.
        """
        if case_file.name in {CASE_FILE, "SKILL.md"}:
            return case_file.parent
        for pattern, skill in self.owners:
            if case_file.match(pattern):
                return skill
        reading = None
        with suppress(BadFile):
            reading = self.reading(case_file)
        name_in_file = reading.skill if reading else ""
        if enclosing := _enclosing_skill(case_file):
            own = {"", plain_name(enclosing.name), plain_name(title_of(enclosing))}
            is_other = plain_name(name_in_file) not in own
            return (is_other and self.find_skill(name_in_file, case_file)) or enclosing
        case = case_file.parent if reading and reading.adapter.is_folder else case_file
        found = (self.find_skill(name, case) for name in _names_of_skill(case, name_in_file))
        return next(filter(None, found), None) or self._only_skill_near(case, reading)

    def skill_has_cases(self, skill: Path) -> bool:
        """Return whether any case file belongs to the skill in the folder ``skill``."""
        return any(self._case_files_of(skill))

    def case_files_of(self, skill: Path) -> Sequence[Path]:
        """Return the case files of the skill in the folder ``skill``, wherever they are."""
        return sorted(set().union(*self._case_files_of(skill)))

    def case_files_above(self, skill: Path) -> set[Path]:
        """Return those of a skill's case files that the folders above it have."""
        roots = self.search_roots(skill)
        return set().union(*(self._case_files_in(top).get(skill, ()) for top in roots))

    def _case_files_of(self, skill: Path) -> Iterator[set[Path]]:
        yield self._case_files_in(skill).get(skill, set())
        yield self.case_files_above(skill)

    def _only_skill_near(self, case_file: Path, reading: Reading | None) -> Path | None:
        """Return the only skill near a file, unless the file or its folder could mean another."""
        folder = case_file.parent
        is_in_case_folder = folder.name in CASE_FOLDERS
        top = folder.parent if is_in_case_folder else folder
        if named := None if is_in_case_folder else _TRIGGERS_OF.fullmatch(case_file.stem):
            return self.find_skill(named[1], case_file)
        if (top / "skill" / "SKILL.md").exists():
            return top / "skill"
        if reading and (reading.skill or any(each.draft.skills for each in reading.entries)):
            return None
        skills = self.skills_below(top)
        if not is_in_case_folder:
            if not registry.is_certain(case_file):
                return None
            homes = {top / home for home in _PLAIN_HOMES}
            skills = {skill: title for skill, title in skills.items() if skill.parent in homes}
        # Copies for several agents, and links to one, are one skill.
        names = {title or folder for folder, title in skills.items()}
        return _closest([*skills], {*folder.parts}) if len(names) == 1 else None

    def skills_of(self, case_file: Path) -> Iterator[Path]:
        """Yield the folder of the skill that a file belongs to, and of those its cases name."""
        if owner := self.owning_skill(case_file):
            yield owner
        if case_file.name != CASE_FILE:
            with suppress(BadFile):
                reading = self.reading(case_file)
                names = reading.skills if reading else ()
                yield from filter(None, (self.find_skill(name, case_file) for name in names))

    def _case_files_below(self, top: Path) -> Mapping[Path, set[Path]]:
        """Return the case files in and below a folder, by the folder of their skill."""
        files = {file for pattern in CASE_FILE_PATTERNS for file in top.glob(pattern)}
        if (top / "SKILL.md").exists():
            files |= set(filter(registry.is_folder_of_cases, top.rglob("*.*")))
        found: dict[Path, set[Path]] = defaultdict(set)
        for file in filter(self.is_case_file, files):
            for skill in self.skills_of(file):
                found[skill].add(file)
        return found

    def find_skill(self, name: str, near: Path) -> Path | None:
        """Return the folder of the skill with a given name near a file, None if there is none.

        Of several skills with that name, it is the one whose path shares the most folders with
        the path of the file. On a tie it is None, unless their texts are identical.
        """
        plain = plain_name(name)
        if not plain:
            return None
        for top in self.search_roots(near):
            skills = self.skills_below(top)
            by_folder = [folder for folder in skills if plain_name(folder.name) == plain]
            by_title = [folder for folder, title in skills.items() if title == plain]
            if matches := by_folder or by_title:
                return _closest(matches, {*near.parts, *name.split("/")})
        return None

    def search_roots(self, path: Path) -> Sequence[Path]:
        """Return the folders to search: those above a path, up to its repository or project."""
        above = path.parents[:_MOST_ABOVE]
        top = next((folder for folder in above if (folder / ".git").exists()), self.root)
        return above[: above.index(top) + 1] if top in above else above[:_MOST_WITHOUT_GIT]


def _skills_below(top: Path) -> Mapping[Path, str]:
    """Return the folders of the skills below a folder, with their titles as plain names."""
    folders: set[Path] = set()
    for home in _HOMES:
        with suppress(OSError):
            folders.update(file.parent for file in top.glob(f"{home}/*/SKILL.md"))
    return {folder: plain_name(title_of(folder)) for folder in sorted(folders)}


def title_of(folder: Path) -> str:
    """Return the name in the ``SKILL.md`` of a folder, "" if there is none."""
    found = _TITLE.search(start_of(folder / "SKILL.md"))
    return found[1] if found else ""


def _names_of_skill(case_file: Path, name_in_file: str) -> Iterator[str]:
    """Yield what may be the name of the skill that a file belongs to, the likeliest first."""
    for folder in case_file.parents[: _MOST_ABOVE - 1]:
        if folder.name not in CASE_FOLDERS and _is_among_cases(folder.parents[:2]):
            yield folder.name
    yield name_in_file
    if _is_among_cases(case_file.parents[:3]):
        yield _OF_CASES.sub("", case_file.stem)
    yield case_file.parent.name


def _is_among_cases(above: Sequence[Path]) -> bool:
    return any(folder.name in CASE_FOLDERS for folder in above)


def _enclosing_skill(case_file: Path) -> Path | None:
    """Return the skill whose folder contains the file, if the file is in a place for cases."""
    for folder in case_file.parents[:_MOST_ABOVE]:
        if (folder / "SKILL.md").exists():
            below = case_file.parent.relative_to(folder).as_posix()
            is_for_cases = CASE_SUBFOLDERS.fullmatch(f"{below}/".removeprefix("./"))
            return folder if is_for_cases or registry.is_folder_of_cases(case_file) else None
    return None


def _closest(folders: Sequence[Path], parts: set[str]) -> Path | None:
    """Return the folder whose path has most of ``parts``, None on a tie of different skills."""
    shared = {folder: len(parts.intersection(folder.parts)) for folder in sorted(folders)}
    most = max(shared.values())
    first, *others = (folder for folder, count in shared.items() if count == most)
    texts = {start_of(folder / "SKILL.md") for folder in (first, *others)}
    return None if others and len(texts) > 1 else first


def _is_copied(path: Path, top: Path | None) -> bool:
    """Return whether a file or folder is a copy; ``top``, where the search began, may be in one."""
    return bool(_COPIED.search(f"{os.path.relpath(path, top or Path.cwd())}/"))


def skill_folders(top: Path) -> Iterator[Path]:
    """Yield the folders with a ``SKILL.md`` in and below a folder, not those inside a skill."""
    for place, folders, files in os.walk(top):
        if "SKILL.md" in files:
            yield Path(place)
            folders.clear()
        # os.walk goes into the folders that remain in this list.
        found = (name for name in folders if name not in _NOT_SEARCHED)
        folders[:] = sorted(name for name in found if not _is_copied(Path(place, name), top))


def _is_ours(path: Path) -> bool:
    """Return whether a ``skill_meta.json`` without a skill has our keys, or none at all."""
    start = start_of(path)
    return _OWN_KEYS.search(start) is not None or '"' not in start


_EVALS = "evals.json"


def skill_and_name_meant(file: Path) -> tuple[Path, str]:
    """Return a skill, and the name that a file of it should have; "" if it has no such name.

    Args:
        file: A file from which no cases are read.
    """
    # Imported here: most sessions have no such file.
    from difflib import get_close_matches

    folder, meant = file.parent, [CASE_FILE, _EVALS]
    if folder.name in CASE_FOLDERS and not (folder / "SKILL.md").exists():
        folder, meant = folder.parent, [_EVALS]
    if not (folder / "SKILL.md").exists():
        is_skill = file.name.lower() == "skill.md" and not (folder / CASE_FILE).exists()
        return folder, "SKILL.md" if is_skill else ""
    # So similar must the names be: ``skill.json`` has 0.8.
    return folder, "".join(get_close_matches(file.name, meant, n=1, cutoff=0.9))
