"""Fenced code blocks of an answer, and which of them a compile check builds.

What a fence is, CommonMark says (https://spec.commonmark.org/0.31.2/#fenced-code-blocks). On top:

- A block's language is the first word of its info string, in any spelling `languages` knows;
  without one, the suffix of its file name. A C, C++ or unlabelled block that marks or launches a
  kernel is CUDA.
- A block's file name stands in its info string (``title=a.cu``, ``cpp:a.cu``, ``a.cu``), alone on
  the line above, or alone in a comment on its first line. What is not a plain relative path
  is no name.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from pytest_upskill.checks import languages
from pytest_upskill.checks.relative_path import relative_path

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

MAX_TEXT = 1 << 20
"""Characters of an answer that are read; what comes after does not count."""

_SUFFIX = re.compile(r"[^/]\.[A-Za-z0-9+]{1,8}\Z")
_ATTRIBUTE = re.compile(
    r"""\b(?:title|file|filename|path|name)\s*[=:]\s*["']?([^"'\s}]+)""", re.IGNORECASE
)
_LONGEST_LINE = 400
_KERNEL = re.compile(r"\b__global__\b|<<<[^;<\n]{1,200}>>>")


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One fenced block."""

    language: str
    """As `languages` calls it, else the label in lower case; empty where there is none."""
    name: str | None
    """The file it says to be: a relative path of plain characters."""
    code: str
    line: int
    """The answer's line that ``code`` starts on, from 1."""
    closed: bool
    """False where the answer ends before the fence does: it was probably cut."""

    @property
    def kind(self) -> str:
        """The language, else the suffix of the file that it says to be."""
        return self.language or (self.name or "").rpartition(".")[2].lower()

    @property
    def is_header(self) -> bool:
        """Whether it is a file that others include."""
        return (
            self.name is not None
            and self.name.rpartition(".")[2].lower() in languages.HEADER_SUFFIXES
        )


def blocks(text: str) -> tuple[Block, ...]:
    """Find the fenced blocks of an answer, in its order."""
    text = text[:MAX_TEXT]
    lines = re.split(r"\r\n?|\n", text)
    return tuple(
        _block(token, lines) for token in _commonmark().parse(text) if token.type == "fence"
    )


def choose(found: tuple[Block, ...], *names: str) -> tuple[Block, ...]:
    """Choose the blocks of a language to build: its named files, else its longest block.

    Of blocks with one name the last counts: an answer that corrects itself means the correction.
    With two or more named files all of them are built, otherwise the longest block (of equals,
    the last). Headers are built only where there is nothing else.

    Args:
        found: The answer's blocks.
        names: What labels and suffixes call the language; one for those that `languages` knows.
    """
    filled = [block for block in found if block.kind in names and block.code.strip()]
    units = [block for block in filled if not block.is_header] or filled
    named = {block.name: block for block in units if block.name}
    if len(named) > 1:
        return tuple(named.values())
    current = [block for block in units if not block.name or named[block.name] is block]
    return tuple(sorted(current, key=lambda block: len(block.code))[-1:])


@cache
def _commonmark() -> MarkdownIt:
    # Here, as a run whose checks read no blocks does not need it.
    from markdown_it import MarkdownIt

    # Inline rules cost most of the time and never make a fence. Without the HTML rule, a fence
    # right under a <details> tag is still found.
    return MarkdownIt("commonmark").disable(["inline", "html_block"])


def _block(token: Token, lines: list[str]) -> Block:
    start, end = token.map or (0, 0)
    label, name = _read_info(token.info.strip())
    above = next((line for line in reversed(lines[max(0, start - 2) : start]) if line.strip()), "")
    name = name or _lone_path(above) or _path_in_comment(token.content.partition("\n")[0])
    language = languages.of_label(label) or (languages.of_file(name) if name else None) or ""
    if language in {"c", "cpp", ""} and _KERNEL.search(token.content):
        language = "cuda"
    fence = lines[end - 1].strip(" \t>") if start < end - 1 < len(lines) else ""
    return Block(
        language=language,
        name=name,
        code=token.content,
        line=start + 2,
        closed=set(fence) == set(token.markup[:1]) and len(fence) >= len(token.markup),
    )


def _read_info(info: str) -> tuple[str, str | None]:
    """Tell label and file name of an info string such as ``cuda title="a.cu"`` or ``{.c #id}``."""
    words = info.strip("{} ").split() or [""]
    label, _, tail = words[0].lstrip(".").partition(":")
    attribute = _ATTRIBUTE.search(info)
    candidates = [attribute[1] if attribute else "", tail, label, *words[1:]]
    name = next((path for word in candidates if (path := _file_name(word))), None)
    return ("" if name == label else label), name


def _path_in_comment(line: str) -> str | None:
    line = line.strip()
    for opening in ("//", "#", "/*"):
        if line.startswith(opening):
            return _lone_path(line.removeprefix(opening).removesuffix("*/"))
    return None


def _lone_path(line: str) -> str | None:
    """Read a line that holds a file's path and else only markup, as in ``2. **File: `a.cu`**``."""
    if len(line) > _LONGEST_LINE:
        return None
    words = [word.strip("`*_:") for word in line.split()]
    words = [word for word in words if word.strip("#>*-0123456789.)") or "/" in word]
    if words and words[0].lower() in {"file", "filename", "path"}:
        del words[0]
    return _file_name(words[0]) if len(words) == 1 else None


def _file_name(text: str) -> str | None:
    """Read a file's path; a word without a suffix is no file."""
    path = relative_path(text)
    return path if path and _SUFFIX.search(path) else None
