"""Checks of a text, and what all checks share: their interface, results and messages."""

import re
import warnings
from dataclasses import dataclass, replace
from typing import ClassVar

from pytest_upskill.checks.blocks import MAX_TEXT
from pytest_upskill.checks.cpu_limit import call_untrusted

MAX_MESSAGE = 200
"""Maximum number of characters of a check's message."""

_MAX_QUOTE = 60
_QUOTED_OR_ANSWER = re.compile(r"""('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")|\bthe answer\b""")


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

    @property
    def demands_text(self) -> bool:
        """Whether an answer without any of `wanted` fails."""
        return bool(self.wanted) and not self.is_negative

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


@dataclass(frozen=True, slots=True)
class OfText(TextCheck):
    """A check of one text."""

    text: str

    @property
    def wanted(self) -> tuple[str, ...]:
        """See `TextCheck.wanted`."""
        return (self.text,)


@dataclass(frozen=True, slots=True)
class Contains(OfText):
    """A check that the answer contains a text, ignoring case."""

    name: ClassVar[str] = "contains"
    for_teacher = "a string, or a list of strings that must all occur; case does not matter"
    is_fast = True

    def check(self, text: str) -> CheckResult:
        """Search for the text."""
        if self.text.casefold() in text.casefold():
            return passed(self.name, f" {quoted(self.text)}: in the answer")
        return failed(self.name, f" {quoted(self.text)}: not in {summary(text)}")


@dataclass(frozen=True, slots=True)
class NotContains(OfText):
    """A check that the answer does not contain a text, ignoring case."""

    name: ClassVar[str] = "not_contains"
    for_teacher = "a string, or a list of strings that must not occur; case does not matter"
    is_negative = True
    is_fast = True

    def check(self, text: str) -> CheckResult:
        """Search for the text."""
        folded = text.casefold()
        start = folded.find(self.text.casefold())
        if start < 0:
            return passed(self.name, f" {quoted(self.text)}: not in the answer")
        return failed(self.name, f" {quoted(self.text)}: found in {excerpt(text, start, folded)}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainsAny(TextCheck):
    """A check that the answer contains at least one of several texts, ignoring case."""

    name: ClassVar[str] = "contains_any"
    for_teacher = "a list of strings of which one must occur; case does not matter"
    is_fast = True

    texts: tuple[str, ...]

    @property
    def wanted(self) -> tuple[str, ...]:
        """See `TextCheck.wanted`."""
        return self.texts

    def check(self, text: str) -> CheckResult:
        """Search for each of the texts."""
        folded = text.casefold()
        for candidate in self.texts:
            if candidate.casefold() in folded:
                return passed(self.name, f" {quoted(candidate)}: in the answer")
        texts = cut(", ".join(map(quoted, self.texts)), 80)
        return failed(self.name, f" {texts}: none in {summary(text)}")


@dataclass(frozen=True, slots=True)
class OfPattern(TextCheck):
    """A check of one pattern."""

    pattern: str

    @property
    def wanted(self) -> tuple[str, ...]:
        """See `TextCheck.wanted`."""
        return (self.pattern,)


@dataclass(frozen=True, slots=True)
class Regex(OfPattern):
    """A check that a pattern of Python's ``re``, with inline flags, is found in the answer."""

    name: ClassVar[str] = "regex"
    for_teacher = "a pattern in Python's syntax that must be found, or a list of them"

    def check(self, text: str) -> CheckResult:
        """Search for the pattern.

        Raises:
            CheckError: The search takes too long.
        """
        start = call_untrusted(f"{self.name} {quoted(self.pattern)}", _find, self.pattern, text)
        if start is not None:
            return passed(self.name, f" {quoted(self.pattern)}: found")
        return failed(self.name, f" {quoted(self.pattern)}: not found in {summary(text)}")


@dataclass(frozen=True, slots=True)
class NotRegex(OfPattern):
    """A check that a pattern of Python's ``re``, with inline flags, is not in the answer."""

    name: ClassVar[str] = "not_regex"
    for_teacher = "a pattern in Python's syntax that must not be found, or a list of them"
    is_negative = True

    def check(self, text: str) -> CheckResult:
        """Search for the pattern.

        Raises:
            CheckError: The search takes too long.
        """
        start = call_untrusted(f"{self.name} {quoted(self.pattern)}", _find, self.pattern, text)
        if start is None:
            return passed(self.name, f" {quoted(self.pattern)}: not found")
        return failed(self.name, f" {quoted(self.pattern)}: found in {excerpt(text, start)}")


def compile_pattern(pattern: str) -> re.Pattern[str]:
    """Compile a pattern, without Python's warnings about future changes of the syntax.

    Raises:
        re.error: The pattern is invalid.
        RecursionError: It is nested too deeply.
        OverflowError: It has too large a repeat count.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return re.compile(pattern)


def pattern_problem(pattern: str) -> str | None:
    """Return why a pattern cannot be compiled, or is a mistake; None if it is neither."""
    if "\b" in pattern:
        return r"a backspace, which \b is in JSON and quoted YAML: write \\b"
    try:
        compile_pattern(pattern)
    except re.error as error:
        return error.msg + ("" if error.pos is None else f" at character {error.pos + 1}")
    except (RecursionError, OverflowError) as error:
        return str(error)
    return None


def _find(pattern: str, text: str) -> int | None:
    match = compile_pattern(pattern).search(text, 0, MAX_TEXT)
    return match.start() if match else None
