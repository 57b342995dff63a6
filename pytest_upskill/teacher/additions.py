"""What a teacher's text adds to a skill: what is refused, and what is shown before consent.

Nothing is known because a source says it, as whoever wrote the source may be an attacker: only the
URLs of sources may be repeated.
"""

import difflib
import html
import re
import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import suppress

from pytest_upskill.cases.skill import Case
from pytest_upskill.checks import CheckError
from pytest_upskill.checks.blocks import blocks
from pytest_upskill.checks.text import TextCheck

WORDS = 8
"""So many words in a row are the same in two texts only if one copies the other."""

_WORD = re.compile(r"\w+")


def copies_words(text: str, original: str) -> bool:
    """Return whether a text has 8 words in a row from another, ignoring case and punctuation.

    If the original has 4 to 7 words, all of them count, so that short questions are found.
    """
    words, copied = _WORD.findall(text.casefold()), _WORD.findall(original.casefold())
    length = min(WORDS, len(copied))
    runs, copied_runs = (
        {tuple(each[i : i + length]) for i in range(len(each) - length + 1)}
        for each in (words, copied)
    )
    return length >= WORDS // 2 and not runs.isdisjoint(copied_runs)


_URL = re.compile(
    r"\b(?:(?:https?|ftp|file|ssh|data|javascript):|[a-z][a-z0-9+.-]{0,30}:[/\\]{2}|www\.)"
    r"[^\s)>\]\"'`]+",
    re.IGNORECASE,
)
_HOST_ONLY = re.compile(
    r"(?:(?<![:/\w\\])(?:/[/\\]|\\/)[\w-]+(?:\.[\w-]+)+"
    r"|(?:\]\(|\]:|\b(?:src|srcset|href|poster|data|action)\s*=)\s*(?:[<\"']\s*)?[/\\]\s*[/\\])"
    r"[^\s)>\]\"'`]*",
    re.IGNORECASE,
)
"""A link to another host without a scheme; in HTML a backslash is a slash."""
_LOADED_COMMAND = re.compile(r"!`|^(?>.*?(?:`{3}|~{3})).*!")
"""What Claude Code runs when it loads a skill (https://code.claude.com/docs/en/skills)."""

_HIDDEN_CATEGORIES = frozenset({"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp"})
_HIDDEN = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
"""Characters that are shown as nothing, although their category is of visible ones."""

_PROGRAMS = (
    "apt apt-get bash brew cargo chmod curl docker eval gem git iex iwr npm npx perl pip pip3 pipx"
    " pnpm powershell python python3 rm ruby sh sudo uv uvx wget yarn"
)
_CODE = re.compile(
    r"^(?: {4}|\t)|`|<\w|(?:^|\s)(?:[$%]\s|--?\w)|&&|[|;>]\s*\w|\$\(|\w\("
    rf"|\b(?:{'|'.join(_PROGRAMS.split())})\s+\S",
    re.IGNORECASE,
)
"""Code that is indented or in a line, markup, and what looks like a command in prose."""


def refused_parts(new: str, old: str = "", known: str = "") -> Iterator[str]:
    """Yield what a teacher may not add to a skill.

    Args:
        new: The ``SKILL.md``.
        old: The version before, "" if there is none.
        known: Task and sources, whose URLs may be repeated.
    """
    readable, before = html.unescape(new), html.unescape(old)
    # In the whole text, because such a link may go on in the next line.
    for pattern, what, more in (
        (_URL, "a new URL", known),
        (_HOST_ONLY, "a link to a host without its scheme", ""),
    ):
        allowed = {link for text in (old, before, more) for link in pattern.findall(text)}
        for link in (*pattern.findall(new), *pattern.findall(readable)):
            if link not in allowed:
                yield f"{what}: {link[:80]}"
    old_lines = {*old.split("\n"), *before.split("\n")}
    for line in (*new.split("\n"), *readable.split("\n")):
        if line in old_lines:
            continue
        if _LOADED_COMMAND.search(line):
            yield f"a new command that agents run when they load the skill: {line[:80]}"
        if hidden := next(filter(_is_hidden, line), ""):
            yield f"an invisible character: U+{ord(hidden):04X}"


def new_code(new: str, old: str = "") -> list[str]:
    """Return the lines of a text that are or look like code, without those of an older version."""
    known = {line.strip() for line in _code_lines(old)}
    return [line for line in _code_lines(new) if line.strip() not in known]


def listed_code(new: str, old: str = "") -> Iterator[str]:
    """Yield the lines that list new code before the user consents; none if there is none."""
    if code := new_code(new, old):
        yield "new lines of code, which an agent may run:"
        yield from (f"  | {line}" for line in code)


def _code_lines(text: str) -> Iterator[str]:
    fenced = {
        number
        for block in blocks(text)
        for number, _ in enumerate(block.code.splitlines(), block.line)
    }
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip() and (number in fenced or _CODE.search(line)):
            yield line


def _is_hidden(character: str) -> bool:
    if character == "\t":
        return False
    return unicodedata.category(character) in _HIDDEN_CATEGORIES or bool(_HIDDEN.match(character))


def marked_diff(old: str, new: str, cases: Sequence[Case]) -> Iterator[str]:
    """Yield the lines of a unified diff, those marked that newly say what a check looks for."""
    lines = difflib.unified_diff(
        old.splitlines(), new.splitlines(), "a/SKILL.md", "b/SKILL.md", lineterm="", n=2
    )
    for line in lines:
        added = line[1:] if line.startswith("+") and not line.startswith("+++") else ""
        found = sorted({case.id for case in cases if added and _reveals_check(added, case, old)})
        yield f"{line}    <- a check of {', '.join(found)} looks for this" if found else line


def _reveals_check(line: str, case: Case, old: str) -> bool:
    """Return whether a line says what a check of a case looks for, and the old text does not."""
    texts = [each for each in case.checks if isinstance(each, TextCheck) and each.demands_text]
    with suppress(CheckError):
        return any(each.check(line).passed and not each.check(old).passed for each in texts)
    return False
