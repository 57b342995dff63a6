"""Read what README and docs show: files, sessions in a terminal, workflows."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from glob import escape
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

CHECKOUT = Path(__file__).parents[1]
PAGES = [
    *(CHECKOUT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    CHECKOUT / "example_skills" / "README.md",
    *sorted((CHECKOUT / "docs").glob("*.md")),
]
TUTORIAL = CHECKOUT / "docs" / "tutorial.md"
"""Its commands need each other and a model: ``tests/shipped/test_tutorial.py`` runs them."""

OUT_OF_DATE = "out of date: run python -m tests.shipped.generate"
"""What to do when a file that is made from the code is another one."""

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


def check_shown(shown: Sequence[str], output: Sequence[str], code: int) -> None:
    """Compare what a page shows of a command with its output; ``...`` stands for what varies."""
    red = any(line.startswith(("FAILED", "ERROR", "collected 0")) for line in shown)
    assert (code != 0) == red, "\n".join(output)
    lines = [escape(re.sub(r"\d+\.\d+s\b", "...", line)) for line in shown if line.strip()]
    pytest.LineMatcher([*output]).fnmatch_lines(
        [re.sub(r"=+ (.*) =+$", r"*\1*", line).replace("...", "*") for line in lines]
    )


def links(page: Path) -> Iterator[str]:
    for token in _MARKDOWN.parse(page.read_text("utf-8")):
        for child in token.children or ():
            if child.type == "link_open":
                yield str(child.attrs["href"])
