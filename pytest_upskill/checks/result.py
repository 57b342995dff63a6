"""The interface of a check, its result, and functions for its message."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import ClassVar

MAX_MESSAGE = 200
"""Maximum number of characters of a check's message."""

_MAX_QUOTE = 60
_QUOTED_OR_ANSWER = re.compile(r"""('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")|\bthe answer\b""")


class CheckError(Exception):
    """A check that could not be decided; its run counts as missing, not as passed or failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResult:
    """The result of one check on one answer."""

    name: str
    """The key in the case file: ``contains``, ``compile`` …"""
    passed: bool
    message: str
    """What was expected and what was found, in one line."""
    detail: str = ""
    """Further lines, such as the compiler's diagnostics."""
    is_negative: bool = False
    """Whether it says what is not in the answer, which a cut one cannot show: as its class, or a
    plugin, says."""


class Check:
    """A kind of check, and what it says of its key in ``expected``."""

    for_teacher: ClassVar[str] = ""
    """What its value is, in a teacher's prompt; "" for keys that no teacher writes."""

    @property
    def name(self) -> str:
        """The key in the case file."""
        raise NotImplementedError


class TextCheck(Check):
    """An assertion that is decided from the answer's text alone; `TextChecks` lists all kinds."""

    is_negative: ClassVar[bool] = False
    """Whether it says what must not be in the answer, so that an empty answer passes."""
    is_fast: ClassVar[bool] = False
    """Whether it needs no time limit."""

    @property
    def wanted(self) -> tuple[str, ...]:
        """The texts or patterns that it looks for."""
        return ()

    def check(self, text: str) -> CheckResult:
        """Check an answer.

        Raises:
            CheckError: The check cannot be decided.
        """
        raise NotImplementedError


def passed(name: str, what: str) -> CheckResult:
    """Make a passed result, whose message is ``name`` followed by ``what``."""
    return CheckResult(name=name, passed=True, message=cut(name + what, MAX_MESSAGE))


def failed(name: str, what: str, *, detail: str = "") -> CheckResult:
    """Make a failed result, whose message is ``name`` followed by ``what``."""
    message = cut(name + what, MAX_MESSAGE)
    return CheckResult(name=name, passed=False, message=message, detail=detail)


def about(result: CheckResult, subject: str, text: str) -> CheckResult:
    """Return the result of a check of another text than the answer.

    Args:
        result: The result, as of an answer.
        subject: The key in the case file, and whose text it is.
        text: What it is called in messages, such as ``the file``.
    """
    message = _QUOTED_OR_ANSWER.sub(lambda match: match[1] or text, result.message)
    name = subject.partition(" ")[0]
    return replace(result, name=name, message=cut(f"{subject}: {message}", MAX_MESSAGE + 40))


def summary(text: str) -> str:
    """Return a short description of an answer."""
    if not text.strip():
        return "the answer, which is empty"
    return f"the answer ({len(text)} characters; begins {quoted(text.lstrip(), 40)})"


def excerpt(text: str, offset: int, folded: str = "") -> str:
    """Return the quoted text of a line from near an offset on, of the case-folded text if given."""
    before = (folded or text)[:offset]
    line, column = before.count("\n"), offset - before.rfind("\n") - 1
    # Case folding may shift columns a little, but never lines.
    whole = text.split("\n")[line]
    start = max(0, column - 20) if len(whole) > _MAX_QUOTE else 0
    return f"line {line + 1}: {quoted('…' * (start > 0) + whole[start:])}"


def quoted(text: str, length: int = _MAX_QUOTE) -> str:
    """Return a text in quotes, shortened to ``length`` characters, with visible line breaks.

    Backslashes are not doubled: a pattern looks as its reader searches for it.
    """
    return repr(text if len(text) <= length else f"{text[: length - 1]}…").replace("\\\\", "\\")


def cut(text: str, length: int) -> str:
    """Return a text with escaped control characters, shortened to ``length`` characters."""
    if len(text) <= length and text.isprintable():
        return text
    text = "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode()
        for char in text[: length + 1]
    )
    return text if len(text) <= length else f"{text[: length - 1]}…"
