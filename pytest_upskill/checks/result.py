"""What a check is, and what it says of an answer, in one short line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

MAX_MESSAGE = 200
"""Characters of a check's message."""

_MAX_QUOTE = 60


class CheckError(Exception):
    """A check that could not be decided: the run is missing data, neither passed nor failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResult:
    """What one check found in one answer."""

    name: str
    """The key of the case file: ``contains``, ``compile`` …"""
    passed: bool
    message: str
    """One line that stands alone: what was looked for and what the answer said."""
    detail: str = ""
    """More lines for a reader who looks closer, such as the compiler's diagnostics."""


class Check(Protocol):
    """An assertion that needs nothing but the answer's text."""

    @property
    def name(self) -> str:
        """The key of the case file."""
        ...

    def check(self, text: str) -> CheckResult:
        """Tell whether ``text`` holds."""
        ...


def passed(name: str, what: str) -> CheckResult:
    """Say that a check holds; ``what`` follows its name."""
    return CheckResult(name=name, passed=True, message=cut(name + what, MAX_MESSAGE))


def failed(name: str, what: str, *, detail: str = "") -> CheckResult:
    """Say that a check does not hold; ``what`` follows its name."""
    message = cut(name + what, MAX_MESSAGE)
    return CheckResult(name=name, passed=False, message=message, detail=detail)


def summary(text: str) -> str:
    """Describe an answer in which something is missing."""
    if not text.strip():
        return "the answer, which is empty"
    return f"the answer ({len(text)} characters; begins {quoted(text.lstrip(), 40)})"


def line_column(text: str, offset: int) -> tuple[int, int]:
    """Tell line and column of an offset, both from 0."""
    return text.count("\n", 0, offset), offset - text.rfind("\n", 0, offset) - 1


def excerpt(text: str, line: int, column: int) -> str:
    """Quote a line around a column, both from 0."""
    whole = text.split("\n")[line]
    start = max(0, column - 20) if len(whole) > _MAX_QUOTE else 0
    return f"line {line + 1}: {quoted('…' * (start > 0) + whole[start:])}"


def quoted(text: str, length: int = _MAX_QUOTE) -> str:
    """Quote a text of at most ``length`` characters."""
    return repr(text if len(text) <= length else f"{text[: length - 1]}…")


def cut(text: str, length: int) -> str:
    """Shorten a text, its control characters made visible, to at most ``length`` characters."""
    if len(text) <= length and text.isprintable():
        return text
    text = "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode()
        for char in text[: length + 1]
    )
    return text if len(text) <= length else f"{text[: length - 1]}…"
