"""Discovery of case files: which files hold cases, and which skill each one belongs to."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from pytest_upskill import CASE_FILE, EVALS_FILES
from pytest_upskill.formats.evals.owner import HINTING, NAMING, names_in, plain_name
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

_HOMES = (
    "",
    "skills",
    ".claude/skills",
    ".agents/skills",
    ".github/skills",
    "plugins/*/skills",
    "skills/*",
    "*/skills",
)
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

_HEAD = 64 << 10
"""Characters at the start of a file that are searched for the name of a skill."""

_NAMED = re.compile(
    rf"""["']?\b({"|".join((*sorted(NAMING), *HINTING))})["']?\s*:\s*(?:\[\s*)?["']?([\w:./ -]+)"""
)
_LIST = re.compile(r"\[|^[^\S\n]*-\s", re.MULTILINE)
_SET_OF = re.compile(
    r"""(?<![\w:.-])["']?([\w:.-]+)["']?\s*:\s*(?:\{\s*)?["']?should_(?:not_)?trigger["']?\s*:\s*[\[\n]"""
)
"""The name of a skill in front of its trigger set."""
_MOST_WORDS = 4
"""A text with this many blanks or more is a sentence, not a name."""
_TITLE = re.compile(r"""^name:\s*["']?([^"'\n]+)""", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """A skill near a file of cases."""

    folder: Path
    title: str
    """The name in its ``SKILL.md``, normalized by `plain_name`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """The places in which a project keeps its skills and cases."""

    root: Path | None = None
    """Topmost folder to search for skills outside a git repository; None for no such limit."""
    patterns: tuple[str, ...] = ()
    """Further patterns of case file names, such as ``checks/*.json``."""
    owners: tuple[tuple[str, Path], ...] = ()
    """Patterns of case files, each with the folder of the skill that they belong to."""
    _found: dict[Path, list[_Found]] = field(default_factory=dict, compare=False)
    """Cache of the skills below each folder that was searched."""

    def may_hold_cases(self, path: Path) -> bool:
        """Return whether a file has the name of a case file."""
        name = path.name
        if name in EVALS_FILES or name == CASE_FILE or _GENERIC.fullmatch(name):
            return True
        return any(map(path.match, self.patterns))

    def is_case_file(self, path: Path) -> bool:
        """Return whether a file for which `may_hold_cases` is true holds cases of a skill."""
        if path.name == CASE_FILE:
            return True
        certain = path.name in EVALS_FILES or any(map(path.match, self.patterns))
        if self.skill_beside(path) is None and not any(self.named_near(path)):
            # The reader then reports that the skill is missing.
            return certain and _holds_cases(path)
        return certain or _holds_cases(path)

    def skill_beside(self, case_file: Path) -> Path | None:
        """Return the folder of the skill that a case file belongs to, None if there is none.

        It is the skill that `owners` gives; else the one whose folder contains the file in a place
        for cases; else the one that a folder of cases or the file itself names, or whose name the
        file's folder has; else the only one nearby.
        """
        if case_file.name in {CASE_FILE, "SKILL.md"}:
            return case_file.parent
        if owner := next((skill for one, skill in self.owners if case_file.match(one)), None):
            return owner
        if (around := _around(case_file)) is None:
            return (
                self._of_path(case_file)
                or self._of_head(case_file)
                or self.find_skill(case_file.parent.name, case_file)
                or self._only(case_file)
            )
        name = plain_name(_name_of_file(case_file))
        if name in {"", plain_name(around.name), plain_name(_title(around))}:
            return around
        return self.find_skill(name, case_file) or around

    def find_skill(self, name: str, case_file: Path) -> Path | None:
        """Return the folder of the skill with a given name near a case file, None if there is none.

        Of several skills with that name, it is the one whose path shares the most folders with
        the path of the case file. On a tie it is None, unless their texts are identical.
        """
        wanted = plain_name(name)
        if not wanted:
            return None
        for top in self.tops(case_file):
            skills = self._skills(top)
            found = [each.folder for each in skills if plain_name(each.folder.name) == wanted]
            found = found or [each.folder for each in skills if each.title == wanted]
            if found:
                return _closest(found, {*case_file.parts, *name.split("/")})
        return None

    def named_near(self, case_file: Path) -> Iterator[Path]:
        """Yield the folders of the skills that the cases in a file name."""
        head = _head(case_file)
        found = [*(named for _, named in _NAMED.findall(head)), *_SET_OF.findall(head)]
        names = dict.fromkeys(name for named in found for name in names_in(named))
        likely = (name for name in names if name.count(" ") < _MOST_WORDS)
        yield from filter(None, (self.find_skill(name, case_file) for name in likely))

    def _of_path(self, case_file: Path) -> Path | None:
        """Return the skill that a parent folder names, as in ``evals/csv/evals.json``."""
        above = case_file.parents[: _MOST_ABOVE - 1]
        for index, folder in enumerate(above):
            if folder.name in _CASE_FOLDERS:
                continue
            if any(other.name in _CASE_FOLDERS for other in above[index + 1 : index + 3]):
                return self.find_skill(folder.name, case_file)
            return None
        return None

    def _of_head(self, case_file: Path) -> Path | None:
        """Return the skill that the file names for all of its cases."""
        return self.find_skill(_name_of_file(case_file), case_file)

    def _only(self, case_file: Path) -> Path | None:
        """Return the only skill near a file, unless the file or its folder could mean another."""
        folder = case_file.parent
        top = folder.parent if folder.name in _CASE_FOLDERS else folder
        if (top / "skill" / "SKILL.md").exists():
            return top / "skill"
        keys = {key for key, _ in _NAMED.findall(_head(case_file))}
        if not NAMING.isdisjoint(keys) or (folder == top and case_file.name not in EVALS_FILES):
            return None
        homes = {top / home for home in _HOMES[1:]} if folder == top else {}
        folders = [
            each.folder for each in self._skills(top) if not homes or each.folder.parent in homes
        ]
        return folders[0] if len(folders) == 1 else None

    def _skills(self, top: Path) -> list[_Found]:
        """Return the skills below a folder, in any of the usual folders of skills."""
        if top not in self._found:
            folders = {folder for home in _HOMES for folder in _skills_of(top, home)}
            self._found[top] = [
                _Found(folder=folder, title=plain_name(_title(folder)))
                for folder in sorted(folders)
            ]
        return self._found[top]

    def tops(self, path: Path) -> list[Path]:
        """Return the folders above a path, up to the root of its repository or project."""
        above = path.parents[:_MOST_ABOVE]
        git = next(
            (index for index, folder in enumerate(above) if (folder / ".git").exists()), None
        )
        root = above.index(self.root) if self.root in above else _MOST_WITHOUT_GIT - 1
        return list(above[: (root if git is None else git) + 1])


class KnownCases:
    """A lookup of the skills that have cases; folders that skills share are searched once.

    Args:
        places: Where to search for cases.
    """

    def __init__(self, places: Places) -> None:
        self._places = places
        self._shared: dict[Path, set[Path]] = {}
        """Folders of the skills that the case files in and below a folder belong to, by folder."""

    def has(self, folder: Path) -> bool:
        """Return whether any case file belongs to the skill in ``folder``."""
        own = ("", *(f"{name}/" for name in _CASE_FOLDERS), "references/", "modes/*/")
        if any(
            folder in self._skills_of(file) for place in own for file in folder.glob(f"{place}*")
        ):
            return True
        return any(folder in self._beside(top) for top in self._places.tops(folder))

    def _beside(self, top: Path) -> set[Path]:
        if top not in self._shared:
            places = [f"{name}/{deep}*" for name in _CASE_FOLDERS for deep in ("", "*/", "*/*/")]
            files = (file for place in ("*", *places) for file in top.glob(place))
            self._shared[top] = {folder for file in files for folder in self._skills_of(file)}
        return self._shared[top]

    def _skills_of(self, file: Path) -> Iterator[Path]:
        names_cases = self._places.may_hold_cases(file) and file.is_file()
        if names_cases and self._places.is_case_file(file):
            yield from filter(None, (self._places.skill_beside(file),))
            yield from self._places.named_near(file)


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
            return holds_cases(_head(path).rpartition("\n")[0], suffix=path.suffix)
    return False


def _around(case_file: Path) -> Path | None:
    """Return the skill whose folder contains the file, if the file is in a place for cases."""
    for folder in case_file.parents[:_MOST_ABOVE]:
        if (folder / "SKILL.md").exists():
            below = case_file.parent.relative_to(folder).as_posix()
            return folder if _INSIDE.fullmatch(f"{below}/".removeprefix("./")) else None
    return None


def _name_of_file(case_file: Path) -> str:
    """Return the name of the skill that a file gives before its first list, "" if none."""
    head = _head(case_file)
    first_list = _LIST.search(head)
    found = _NAMED.finditer(head, 0, first_list.start() if first_list else len(head))
    return next((match[2] for match in found if match[1] in NAMING), "")


def _skills_of(top: Path, home: str) -> Iterator[Path]:
    """Yield the folders of the skills in ``home``, a pattern relative to ``top``."""
    with suppress(OSError):
        yield from (path.parent for path in top.glob(f"{home}/*/SKILL.md".lstrip("/")))


def _closest(folders: Iterable[Path], parts: set[str]) -> Path | None:
    ranked = sorted(folders, key=lambda folder: (-len(parts.intersection(folder.parts)), folder))
    ties = [folder for folder in ranked if not _closer(ranked[0], folder, parts)]
    return ranked[0] if len(ties) == 1 else _same_text(ties)


def _closer(folder: Path, other: Path, parts: set[str]) -> bool:
    return len(parts.intersection(folder.parts)) > len(parts.intersection(other.parts))


def _same_text(folders: list[Path]) -> Path | None:
    """Return the first folder if all hold the same ``SKILL.md``, else None."""
    texts = {(folder / "SKILL.md").read_bytes() for folder in folders}
    return folders[0] if len(texts) == 1 else None


def _title(folder: Path) -> str:
    found = _TITLE.search(_head(folder / "SKILL.md"))
    return found[1] if found else ""


def _head(path: Path) -> str:
    with suppress(OSError):
        if path.is_file():  # not a pipe, which might never end
            with path.open(encoding="utf-8", errors="replace") as file:
                return file.read(_HEAD)
    return ""
