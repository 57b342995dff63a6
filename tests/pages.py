"""Read what README and docs show: files, sessions in a terminal, workflows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from markdown_it import MarkdownIt

CHECKOUT = Path(__file__).parents[1]
PAGES = [
    *(CHECKOUT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    CHECKOUT / "example_skills" / "README.md",
    *sorted((CHECKOUT / "docs").glob("*.md")),
]

_TITLE = re.compile(r'title="([^"]+)"')
_MARKDOWN = MarkdownIt("commonmark").enable("table")


@dataclass(frozen=True, kw_only=True)
class Fence:
    """A fenced block of a page."""

    language: str
    title: str | None
    """The file that it is, where the page names one."""
    text: str
    line: int


@dataclass(frozen=True, kw_only=True)
class Command:
    """A command of a ``console`` block, and the lines shown below it."""

    text: str
    shown: tuple[str, ...]


def page_name(page: Path) -> str:
    return page.relative_to(CHECKOUT).as_posix()


def fences(page: Path) -> list[Fence]:
    return [
        Fence(
            language=token.info.partition(" ")[0],
            title=found[1] if (found := _TITLE.search(token.info)) else None,
            text=token.content,
            line=token.map[0] + 1 if token.map else 0,
        )
        for token in _MARKDOWN.parse(page.read_text("utf-8"))
        if token.type in {"fence", "code_block"}
    ]


def commands(console: str) -> Iterator[Command]:
    """Split a session into commands: ``$ `` begins a command, a backslash continues it."""
    first, *entries = re.split(r"(?m)^\$ ", console)
    assert not first.strip(), "a session begins with a command"
    for entry in entries:
        text, _, shown = entry.replace("\\\n", "").partition("\n")
        yield Command(text=text, shown=tuple(shown.splitlines()))


def links(page: Path) -> Iterator[str]:
    for token in _MARKDOWN.parse(page.read_text("utf-8")):
        for child in token.children or ():
            if child.type == "link_open":
                yield str(child.attrs["href"])
