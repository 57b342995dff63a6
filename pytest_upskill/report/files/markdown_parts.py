"""Parts of a Markdown page: code, tables, and sections that are cut to a limit."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from pytest_upskill.sanitize.safe_text import safe

COMMENT_LIMIT = 65_536
"""GitHub's limit of a comment in characters, applied to bytes, which are never fewer."""

_RESERVE = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A part of the page whose rows can be left out."""

    head: str
    rows: tuple[str, ...] = ()
    tail: str = ""


def code(text: str, *, table: bool = False) -> str:
    """Return untrusted text as inline code, where HTML, links and @mentions have no effect.

    Args:
        text: Any text; it becomes one line.
        table: Whether the text is for a table cell, where ``|`` must be escaped.
    """
    text = safe(text).replace("\n", " ") or " "
    ticks = "`" * (1 + max(map(len, re.findall("`+", text)), default=0))
    pad = " " if "`" in (text[0], text[-1]) else ""
    text = text.replace("|", "\\|") if table else text
    return f"{ticks}{pad}{text}{pad}{ticks}"


def fence(text: str) -> str:
    """Return untrusted lines as a fenced code block."""
    text = safe(text).rstrip("\n")
    ticks = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
    return f"{ticks}text\n{text}\n{ticks}\n"


def table_head(*columns: str) -> str:
    """Return the first two lines of a table."""
    return f"| {' | '.join(columns)} |\n|{' --- |' * len(columns)}\n"


def folded(title: str) -> str:
    """Return the start of a part that is folded, which ``</details>`` ends."""
    return f"<details><summary><code>{html.escape(safe(title))}</code></summary>\n\n"


def fit(sections: Sequence[Section], footer: Section, limit: int) -> str:
    """Return the sections joined; each keeps its head and as many rows as fit the limit."""
    left = limit - _RESERVE
    last, left_out = _take(footer, left)
    left -= _bytes(last)
    page = ""
    for section in sections:
        text, more = _take(section, left)
        left -= _bytes(text)
        left_out += more
        page += text
    if left_out:
        page += f"_{left_out} sections left out to limit the size: --upskill-html has them._\n\n"
    return page + last


def _take(section: Section, room: int) -> tuple[str, int]:
    """Return the part of a section that fits, and the number of parts left out."""
    room -= _bytes(section.head + section.tail)
    if room < 0:
        return "", 1
    sizes = accumulate(_bytes(row) for row in section.rows)
    rows = section.rows[: sum(size <= room for size in sizes)]
    return section.head + "".join(rows) + section.tail, len(section.rows) - len(rows)


def _bytes(text: str) -> int:
    return len(text.encode())
