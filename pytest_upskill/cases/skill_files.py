"""What of a skill reaches a model: its text with the files that it names, or all its files."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path, PurePosixPath
from urllib.parse import unquote, urlsplit

from pytest_upskill.cases.hidden_files import (
    entries_with_cases,
    has_shape_of_cases,
    is_hidden_by_place,
    may_be_installed,
    without_entries,
)
from pytest_upskill.cases.skill import HiddenFiles, Skill
from pytest_upskill.cases.skill_md import SkillText, read_skill_text
from pytest_upskill.cases.source.document import BadFile, Problem
from pytest_upskill.cases.source.files import (
    MAX_TOTAL_BYTES,
    BinaryError,
    Unreadable,
    read_folder,
    read_text_inside,
)
from pytest_upskill.checks.files import WorkspaceFile

# A line with a suffix, which every path has: a search for it first is many times faster.
_LINE = re.compile(r"^.*\.\w.*$", re.MULTILINE)
# A path relative to the skill's folder, but not the end of a URL or a word of a sentence.
_PATH = re.compile(r"(?:(?<![\w/.:@~-])|(?<=\}/))(?:\./)?(?P<path>\w[\w.-]*(?:/[\w.-]+)*\.\w+)")
_LINK = re.compile(r"\]\((?:<(?P<bracketed>[^<>\n]+)>|(?P<plain>[^()<>\s]+))")
_EXAMPLES = re.compile(r"(?ms)^ {0,3}(`{3,}|~{3,}).*?(?:^ {0,3}\1|\Z)|`[^`\n]*`|<!--.*?-->")
"""Code and comments, in which links are examples."""
_TEXT = frozenset({".md", ".txt"})
"""Suffixes of documents."""

_MAX_INSTALLED_BYTES = 16 << 20
"""Maximum size of a skill that is installed for an agent, with its fonts and pictures."""


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
    warnings: list[Problem] = []
    left = MAX_TOTAL_BYTES

    def leave_out(at: int, why: str, *, is_hint: bool = False) -> None:
        problem = Problem.in_text(skill.text, at, f"left out of the context: {why}")
        warnings.append(replace(problem, is_hint=is_hint))

    for name, at in _named_files(folder, skill, hidden):
        if has_shape_of_cases(folder / name):
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
    for name, at in _missing_links(folder, skill):
        leave_out(at, f"{name!r} does not exist in the skill's folder", is_hint=True)
    entries = entries_with_cases(skill, folder)
    for entry in entries:
        what = f"{entry['key']!r} reads as cases, and no model may see their answers"
        leave_out(entry.start(), what, is_hint=True)
    text = without_entries(skill.text, entries)
    text = text.rstrip() + "".join(parts.values()) if parts else text
    return Bundle(text=text, names=tuple(parts), warnings=tuple(warnings))


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
        is_excluded=lambda name: not may_be_installed(folder, name, hidden),
        max_bytes=_MAX_INSTALLED_BYTES,
    )
    return tuple(_without_cases(file, folder) for file in files)


def _without_cases(file: WorkspaceFile, folder: Path) -> WorkspaceFile:
    if file.name == "SKILL.md":
        with suppress(BadFile):
            skill = read_skill_text(file.prompt, folder=folder.name)
            if entries := entries_with_cases(skill, folder):
                return replace(file, text=without_entries(skill.text, entries))
    return file


def _is_expected(error: Unreadable, folder: Path, name: str) -> bool:
    """Return whether a file is a picture or the like, or in the folder of another skill."""
    if isinstance(error, BinaryError):
        return PurePosixPath(name).suffix not in _TEXT
    above = Path(os.path.normpath(folder.absolute() / name)).parents
    others = (each for each in above if not folder.absolute().is_relative_to(each))
    return any((other / "SKILL.md").exists() for other in others)


def _named_files(folder: Path, skill: SkillText, hidden: HiddenFiles) -> Iterator[tuple[str, int]]:
    """Yield the names of existing files, each with the offset of its first mention."""
    text, start = skill.text, skill.body_at
    found: dict[str, int] = {}
    for name, at in chain(_mentions(text, start), _links(text, start)):
        is_other = name.casefold() != "skill.md" and (folder / name).is_file()
        if is_other and not is_hidden_by_place(folder, name, hidden):
            found[name] = min(at, found.get(name, at))
    yield from sorted(found.items(), key=lambda each: each[1])


def _missing_links(folder: Path, skill: SkillText) -> Iterator[tuple[str, int]]:
    """Yield the links to missing files, each with the offset of its first mention."""
    missing: dict[str, int] = {}
    for name, at in _links(skill.text, skill.body_at):
        if PurePosixPath(name).suffix and not (folder / name).exists():
            missing.setdefault(name, at)
    yield from missing.items()


def _links(text: str, start: int) -> Iterator[tuple[str, int]]:
    """Yield possible links to files, as paths, with the offsets of their targets."""
    text = text[:start] + _EXAMPLES.sub(lambda example: " " * len(example[0]), text[start:])
    for match in _LINK.finditer(text, start):
        kind = match.lastgroup or ""
        if name := _local(match[kind]):
            yield name, match.start(kind)


def _local(link: str) -> str | None:
    """Return the target of a link as a relative path, None if it is not one."""
    try:
        url = urlsplit(link)
    except ValueError:
        return None
    if url.scheme or url.netloc or not url.path or url.path.startswith("/"):
        return None
    return PurePosixPath(unquote(url.path)).as_posix()


def _mentions(text: str, start: int) -> Iterator[tuple[str, int]]:
    """Yield possible paths of files, each with the offset of its first mention."""
    found: dict[str, int] = {}
    for line in _LINE.finditer(text, start):
        for match in _PATH.finditer(text, *line.span()):
            found.setdefault(PurePosixPath(match["path"]).as_posix(), match.start())
    return iter(found.items())
