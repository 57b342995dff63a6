"""The files that a ``SKILL.md`` names: a skill is more than its one file."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path, PurePosixPath
from urllib.parse import unquote, urlsplit

from pytest_upskill.formats.skill_md.files import (
    MAX_TOTAL_BYTES,
    BinaryError,
    Unreadable,
    read_file,
)
from pytest_upskill.formats.skill_md.frontmatter import SkillText
from pytest_upskill.formats.source.problems import Problem

# What every path has: searching for it first is many times faster.
_SUFFIX = re.compile(r"\.\w")
# A path from the skill's folder: not the end of a URL, and not a word of a sentence.
_PATH = re.compile(r"(?:(?<![\w/.:@~-])|(?<=\}/))(?:\./)?(?P<path>\w[\w.-]*(?:/[\w.-]+)*\.\w+)")
_LINK = re.compile(r"\]\((?:<(?P<bracketed>[^<>\n]+)>|(?P<plain>[^()<>\s]+))")
_TEXT = frozenset({".md", ".txt"})
"""What is meant to be read, whatever is in it."""
_ANSWERS = re.compile(r"SKILL\.md|skill_meta\.json|evals?(/|\.)|(tests|benchmark)/evals\.")
"""What is in context already, and what no model may see."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bundle:
    """Files that go into the context behind the ``SKILL.md``."""

    text: str
    """The ``SKILL.md``, and behind it every file between two tags, in the order of mention."""
    warnings: tuple[Problem, ...]
    """Files that are named and left out."""


def read_bundle(folder: Path, skill: SkillText) -> Bundle:
    """Read the files of a skill's folder that its body names, such as ``references/api.md``.

    Files that these name in turn are not read, as the specification wants references one level
    deep. The case files never are: they hold the answers.

    Args:
        folder: The skill's folder.
        skill: Its ``SKILL.md``.
    """
    parts: list[str] = []
    warnings: list[Problem] = []
    left = MAX_TOTAL_BYTES
    for name, at in _named(folder, skill.text, skill.body_at):
        try:
            content = read_file(folder, folder / name, shown=name)
        except BinaryError as error:
            if PurePosixPath(name).suffix in _TEXT:
                warnings.append(_left_out(skill.text, at, str(error)))
            continue
        except Unreadable as error:
            if not _is_of_another_skill(folder, name):
                warnings.append(_left_out(skill.text, at, str(error)))
            continue
        left -= len(content.encode())
        if left < 0:
            what = f"from {name!r} on it would be over {MAX_TOTAL_BYTES >> 10} KiB"
            warnings.append(_left_out(skill.text, at, what))
            break
        parts.append(f'\n\n<file name="{name}">\n{content.rstrip()}\n</file>')
    for name, at in _missing_links(folder, skill):
        what = f"{name!r} is not in the skill's folder"
        warnings.append(_left_out(skill.text, at, what))
    text = skill.text.rstrip() + "".join(parts) if parts else skill.text
    return Bundle(text=text, warnings=tuple(warnings))


def deeper_references(folder: Path, skill: SkillText) -> Iterator[tuple[str, Problem]]:
    """Find what the files that a ``SKILL.md`` names refer to in turn: no model is given that.

    Only Markdown is searched, and only for documents: a script is there to be executed. A path
    counts from the skill's folder, or from the file's own.

    Args:
        folder: The skill's folder.
        skill: Its ``SKILL.md``.

    Returns:
        Name of the file that refers to another, and what is to be said of that.
    """
    named = [name for name, _ in _named(folder, skill.text, skill.body_at)]
    seen = set(named)
    for name in named:
        text = _readable(folder, name) if name.endswith(".md") else ""
        documents = (each for each in _mentions(text, 0) if PurePosixPath(each[0]).suffix in _TEXT)
        for path, at in documents:
            paths = (path, (PurePosixPath(name).parent / path).as_posix())
            deeper = next((each for each in paths if _readable(folder, each)), None)
            if deeper and deeper not in seen:
                seen.add(deeper)
                what = f"refers to {deeper!r}, which is not in context: name it in SKILL.md"
                yield name, Problem.in_text(text, at, what)


def _is_of_another_skill(folder: Path, name: str) -> bool:
    """Return whether a path is of another skill: a link between skills is no mistake."""
    above = Path(os.path.normpath(folder.absolute() / name)).parents
    others = (each for each in above if not folder.absolute().is_relative_to(each))
    return any((other / "SKILL.md").exists() for other in others)


def _readable(folder: Path, name: str) -> str:
    try:
        return "" if _ANSWERS.match(name) else read_file(folder, folder / name, shown=name)
    except Unreadable:
        return ""


def _named(folder: Path, text: str, body_at: int) -> Iterator[tuple[str, int]]:
    """Find the names of files that are there, each once, with the offset of its first mention."""
    found: dict[str, int] = {}
    for name, at in chain(_mentions(text, body_at), _links(text, body_at)):
        if not _ANSWERS.match(name) and (folder / name).is_file():
            found[name] = min(at, found.get(name, at))
    yield from sorted(found.items(), key=lambda each: each[1])


def _missing_links(folder: Path, skill: SkillText) -> Iterator[tuple[str, int]]:
    """Find the links to files that are not there, each with the offset of its first mention."""
    text, start = skill.text, skill.body_at
    missing: dict[str, int] = {}
    for name, at in _links(text, start):
        if PurePosixPath(name).suffix and not (folder / name).exists():
            missing.setdefault(name, at)
    if not missing:
        return
    # Only here: what stands in code is an example of a link, and slow to tell.
    from markdown_it import MarkdownIt

    blocks = MarkdownIt("commonmark").parse(text[start:])
    inline = chain.from_iterable(block.children or () for block in blocks)
    linked = {_local(str(token.attrGet("href") or "")) for token in inline}
    yield from ((name, at) for name, at in missing.items() if name in linked)


def _links(text: str, start: int) -> Iterator[tuple[str, int]]:
    """Find what could be links to files, as paths, with the offsets of their targets."""
    for match in _LINK.finditer(text, start):
        kind = match.lastgroup or ""
        if name := _local(match[kind]):
            yield name, match.start(kind)


def _local(link: str) -> str | None:
    """Read the target of a link as a path from the skill's folder, None where it is none."""
    try:
        url = urlsplit(link)
    except ValueError:
        return None
    if url.scheme or url.netloc or not url.path or url.path.startswith("/"):
        return None
    return PurePosixPath(unquote(url.path)).as_posix()


def _mentions(text: str, start: int) -> Iterator[tuple[str, int]]:
    """Find what could be paths of files, each once, with the offset of its first mention."""
    found: dict[str, int] = {}
    lines = (_line(text, suffix.start()) for suffix in _SUFFIX.finditer(text, start))
    for match in chain.from_iterable(_PATH.finditer(text, *line) for line in dict.fromkeys(lines)):
        found.setdefault(PurePosixPath(match["path"]).as_posix(), match.start())
    return iter(found.items())


def _line(text: str, at: int) -> tuple[int, int]:
    end = text.find("\n", at)
    return text.rfind("\n", 0, at) + 1, len(text) if end < 0 else end


def _left_out(text: str, at: int, why: str) -> Problem:
    return Problem.in_text(text, at, f"left out of the context: {why}")
