"""Fenced code blocks of an answer, and the choice of the blocks that a check builds or runs.

Fences follow CommonMark (https://spec.commonmark.org/0.31.2/#fenced-code-blocks). In addition:

- The language of a block is the first word of its info string, in any known spelling,
  or else the suffix of its file name. A C, C++ or unlabelled block that defines or launches a
  kernel is CUDA.
- The file name of a block is in its info string (``title=a.cu``, ``cpp:a.cu``, ``a.cu``), alone on
  the line above, or alone in a comment on its first line. It must be a plain relative path.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

_SEGMENT = r"[A-Za-z0-9_][A-Za-z0-9_.+-]{0,99}"
_PATH = re.compile(rf"(?:\./)?({_SEGMENT}(?:/{_SEGMENT}){{0,7}})")


def relative_path(text: str) -> str | None:
    """Return a relative path of plain characters, which cannot lead out of its folder.

    Backslashes become slashes, and a leading ``./`` is removed.

    Returns:
        The path; None if the text is not such a path.
    """
    match = _PATH.fullmatch(text.strip().replace("\\", "/"))
    return match[1] if match else None


LANGUAGES = {
    "c": "c c89 c99 c11 c17 c23",
    "cpp": "cpp c++ cc cxx hpp h++ hxx h cpp17 cpp20 cpp23",
    "cuda": "cuda cu cuh cuda-cpp cuda-c++ cuda-c cudacpp nvcc",
    "python": "python py python3 py3",
}
"""Built-in languages of ``compile`` checks, each with the labels of its fences and its suffixes."""
RUNNABLE = frozenset({"python"})
"""Built-in languages of ``run`` checks."""

_LABELS = LANGUAGES | {
    "json": "json jsonc",
    "toml": "toml",
    "yaml": "yaml yml",
}
"""Those of all known languages."""
_OF_LABEL = {label: language for language, labels in _LABELS.items() for label in labels.split()}
HEADER_SUFFIXES = frozenset({"h", "hpp", "hh", "hxx", "h++", "cuh", "inl", "inc"})
"""Suffixes of files that are included, not compiled on their own."""


def canonical(language: str) -> str | None:
    """Return the name in `LANGUAGES` of a language, as ``"cpp"`` for ``"c++"``, None if unknown."""
    found = _OF_LABEL.get(language.strip().lower())
    return found if found in LANGUAGES else None


def _of_file(name: str) -> str:
    """Return the language of a file by its suffix, "" if it is unknown."""
    return _OF_LABEL.get(PurePosixPath(name).suffix[1:].lower(), "")


if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

MAX_TEXT = 1 << 20
"""Maximum number of characters of an answer that are read; the rest is ignored."""

_SUFFIX = re.compile(r"[^/]\.[A-Za-z0-9+]{1,8}\Z")
_ATTRIBUTE = re.compile(
    r"""\b(?:title|file|filename|path|name)\s*[=:]\s*["']?([^"'\s}]+)""", re.IGNORECASE
)
_COMMENT = re.compile(r"(?://|#|/\*)(.*?)(?:\*/)?")
_LONGEST_LINE = 400
_KERNEL = re.compile(r"\b__global__\b|<<<[^;<\n]{1,200}>>>")


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One fenced block."""

    language: str = ""
    """Its name in `_LABELS`, or else the label in lower case; "" if there is no label."""
    name: str | None = None
    """File name, a relative path of plain characters; None if there is none."""
    code: str
    line: int = 1
    """The line of the answer on which ``code`` starts, from 1."""
    closed: bool = True
    """Whether there is a closing fence; if not, the answer was probably cut off."""

    @property
    def kind(self) -> str:
        """The language, or else the suffix of the file name in lower case."""
        return self.language or (self.name or "").rpartition(".")[2].lower()

    @property
    def is_header(self) -> bool:
        """Whether it is a header file."""
        return self.name is not None and self.name.rpartition(".")[2].lower() in HEADER_SUFFIXES


def file_block(name: str, text: str) -> Block:
    """Return a file as a block."""
    return Block(language=_of_file(name), name=name, code=text)


def blocks(text: str) -> tuple[Block, ...]:
    """Return the fenced blocks of an answer in order."""
    text = text[:MAX_TEXT]
    lines = re.split(r"\r\n?|\n", text)
    return tuple(
        _block(token, lines) for token in _commonmark().parse(text) if token.type == "fence"
    )


def choose_units(candidates: tuple[Block, ...], *names: str) -> tuple[Block, ...]:
    """Return the blocks of a language to build: all named files, or else the longest block.

    If there are at least two named files, all of them are built; otherwise only the longest block,
    or the last of the longest. Of several blocks with one name, the last counts, because an answer
    may correct itself. Headers are built only if there is nothing else.

    Args:
        candidates: The blocks of the answer.
        names: Labels and suffixes of the language; one is enough if `_LABELS` has it.
    """
    filled = [block for block in candidates if block.kind in names and block.code.strip()]
    units = [block for block in filled if not block.is_header] or filled
    named = {block.name: block for block in units if block.name}
    if len(named) > 1:
        return tuple(named.values())
    current = [block for block in units if not block.name or named[block.name] is block]
    return tuple(sorted(current, key=lambda block: len(block.code))[-1:])


@cache
def _commonmark() -> MarkdownIt:
    # Imported late: only checks that read code blocks need it.
    from markdown_it import MarkdownIt

    # Inline rules take most of the time and never produce a fence. Without the HTML rule, a fence
    # directly below a <details> tag is found.
    return MarkdownIt("commonmark").disable(["inline", "html_block"])


def _block(token: Token, lines: list[str]) -> Block:
    start, end = token.map or (0, 0)
    label, name = _read_info(token.info.strip())
    above = next((line for line in reversed(lines[max(0, start - 2) : start]) if line.strip()), "")
    comment = _COMMENT.fullmatch(token.content.partition("\n")[0].strip())
    name = name or _lone_path(above) or (_lone_path(comment[1]) if comment else None)
    # An unknown label is a language of its own.
    language = _OF_LABEL.get(label.lower(), label.lower()) or _of_file(name or "")
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
    """Return label and file name of an info string, such as ``cuda title="a.cu"``, ``{.c #id}``."""
    words = info.strip("{} ").split() or [""]
    label, _, tail = words[0].lstrip(".").partition(":")
    attribute = _ATTRIBUTE.search(info)
    candidates = [attribute[1] if attribute else "", tail, label, *words[1:]]
    name = next((path for word in candidates if (path := _file_name(word))), None)
    return ("" if name == label else label), name


def _lone_path(line: str) -> str | None:
    """Return the path in a line of a path and markup only, such as ``2. **File: `a.cu`**``."""
    if len(line) > _LONGEST_LINE:
        return None
    words = [word.strip("`*_:") for word in line.split()]
    words = [word for word in words if word.strip("#>*-0123456789.)") or "/" in word]
    if words and words[0].lower() in {"file", "filename", "path"}:
        del words[0]
    return _file_name(words[0]) if len(words) == 1 else None


def _file_name(text: str) -> str | None:
    """Return a file's path, None if the text is not a path with a suffix."""
    path = relative_path(text)
    return path if path and _SUFFIX.search(path) else None
