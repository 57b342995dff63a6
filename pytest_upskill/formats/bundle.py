"""The files that a ``SKILL.md`` names: a skill is more than its one file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path, PurePosixPath

from pytest_upskill.formats.problems import Problem
from pytest_upskill.formats.skill_files import (
    MAX_TOTAL_BYTES,
    BinaryError,
    OutsideError,
    Unreadable,
    read_file,
)

# What every path has: searching for it first is many times faster.
_SUFFIX = re.compile(r"\.\w")
# A path from the skill's folder: not the end of a URL, and not a word of a sentence.
_PATH = re.compile(r"(?:(?<![\w/.:@~-])|(?<=\}/))(?:\./)?(?P<path>\w[\w.-]*(?:/[\w.-]+)*\.\w+)")
_ANSWERS = re.compile(r"SKILL\.md|skill_meta\.json|evals?(/|\.)")
"""What is in context already, and what no model may see."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bundle:
    """Files that go into the context behind the ``SKILL.md``."""

    text: str
    """Every file between two tags, in the order in which they are named; empty for none."""
    warnings: tuple[Problem, ...]
    """Files that are named and left out."""


def read_bundle(folder: Path, text: str, *, body_at: int) -> Bundle:
    """Read the files of a skill's folder that its body names, such as ``references/api.md``.

    Files that these name in turn are not read, as the specification wants references one level
    deep. The case files never are: they hold the answers.

    Args:
        folder: The skill's folder.
        text: The text of its ``SKILL.md``.
        body_at: Offset at which the frontmatter ends.
    """
    parts: list[str] = []
    warnings: list[Problem] = []
    left = MAX_TOTAL_BYTES
    for name, at in _named(folder, text, body_at):
        try:
            content = read_file(folder, folder / name, shown=name)
        except BinaryError:
            continue
        except (OutsideError, Unreadable) as error:
            warnings.append(_left_out(text, at, str(error)))
            continue
        left -= len(content.encode())
        if left < 0:
            what = f"from {name!r} on it would be over {MAX_TOTAL_BYTES >> 10} KiB"
            warnings.append(_left_out(text, at, what))
            break
        parts.append(f'\n\n<file name="{name}">\n{content.rstrip()}\n</file>')
    return Bundle(text="".join(parts), warnings=tuple(warnings))


def _named(folder: Path, text: str, body_at: int) -> Iterator[tuple[str, int]]:
    """Find the names of files that are there, each once, with the offset of its first mention."""
    seen: set[str] = set()
    lines = (_line(text, found.start()) for found in _SUFFIX.finditer(text, body_at))
    for match in chain.from_iterable(_PATH.finditer(text, *line) for line in dict.fromkeys(lines)):
        name = PurePosixPath(match["path"]).as_posix()
        if name in seen or _ANSWERS.match(name):
            continue
        seen.add(name)
        if (folder / name).is_file():
            yield name, match.start()


def _line(text: str, at: int) -> tuple[int, int]:
    end = text.find("\n", at)
    return text.rfind("\n", 0, at) + 1, len(text) if end < 0 else end


def _left_out(text: str, at: int, why: str) -> Problem:
    return Problem.in_text(text, at, f"left out of the context: {why}")
