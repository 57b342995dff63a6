"""Search for skills around a case file, in the folders where projects usually keep skills."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from pytest_upskill.formats.evals.named_skills import title_of
from pytest_upskill.formats.evals.owner import plain_name
from pytest_upskill.repository.files import MAX_TEXT_BYTES, read_file

PLAIN_HOMES = ("skills", ".claude/skills", ".agents/skills", ".github/skills")
_HOMES = (".", *PLAIN_HOMES, "plugins/*/skills", "skills/*", "*/skills")
"""Folders of skills, relative to a folder above a case file; a star stands for any folder."""

MOST_ABOVE = 6
"""How many folders above a case file are searched for its skill in a git repository."""

MOST_WITHOUT_GIT = 4
"""The same outside a git repository, when no project root is given."""


class SkillSearch:
    """Search for skills that reads each folder only once.

    Args:
        root: Topmost folder to search outside a git repository; None for no such limit.
    """

    def __init__(self, root: Path | None) -> None:
        self._root = root
        self._skills_below: dict[Path, Mapping[Path, str]] = {}

    def find(self, name: str, near: Path) -> Path | None:
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
        above = path.parents[:MOST_ABOVE]
        for index, folder in enumerate(above):
            if (folder / ".git").exists():
                return above[: index + 1]
        if self._root in above:
            return above[: above.index(self._root) + 1]
        return above[:MOST_WITHOUT_GIT]

    def skills_below(self, top: Path) -> Mapping[Path, str]:
        """Return the folders of the skills below a folder, with their titles as plain names."""
        if top not in self._skills_below:
            folders = {folder for home in _HOMES for folder in _skills_in(top, home)}
            titles = {folder: plain_name(title_of(folder)) for folder in sorted(folders)}
            self._skills_below[top] = titles
        return self._skills_below[top]


def _skills_in(top: Path, home: str) -> Iterator[Path]:
    """Yield the folders of the skills in ``home``, a pattern relative to ``top``."""
    with suppress(OSError):
        yield from (path.parent for path in top.glob(f"{home}/*/SKILL.md"))


def _closest(folders: Sequence[Path], parts: set[str]) -> Path | None:
    """Return the folder whose path has most of ``parts``, None on a tie of different skills."""
    shared = {folder: len(parts.intersection(folder.parts)) for folder in sorted(folders)}
    most = max(shared.values())
    first, *others = (folder for folder, count in shared.items() if count == most)
    texts = {read_file(folder / "SKILL.md", MAX_TEXT_BYTES) for folder in (first, *others)}
    return None if others and len(texts) > 1 else first
