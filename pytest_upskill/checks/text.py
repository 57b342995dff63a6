"""Checks for text and patterns in an answer, under a time limit."""

from __future__ import annotations

import re
import warnings
from contextlib import suppress
from dataclasses import dataclass
from typing import ClassVar

from pytest_upskill.checks.blocks import MAX_TEXT
from pytest_upskill.checks.cpu_limit import call_untrusted
from pytest_upskill.checks.result import (
    CheckError,
    CheckResult,
    TextCheck,
    cut,
    excerpt,
    failed,
    passed,
    quoted,
    summary,
)


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
        place = excerpt(text, start, folded)
        return failed(self.name, f" {quoted(self.text)}: found in {place}")


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
        subject = f"{self.name} {quoted(self.pattern)}"
        if call_untrusted(subject, _find, self.pattern, text, 0) is not None:
            return passed(self.name, f" {quoted(self.pattern)}: found")
        hint = ""
        with suppress(CheckError):
            if call_untrusted(subject, _find, self.pattern, text, re.IGNORECASE) is not None:
                hint = "; (?i) would find it"
        return failed(self.name, f" {quoted(self.pattern)}: not found in {summary(text)}{hint}")


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
        start = call_untrusted(f"{self.name} {quoted(self.pattern)}", _find, self.pattern, text, 0)
        if start is None:
            return passed(self.name, f" {quoted(self.pattern)}: not found")
        place = excerpt(text, start)
        return failed(self.name, f" {quoted(self.pattern)}: found in {place}")


def compile_pattern(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """Compile a pattern, without Python's warnings about future changes of the syntax.

    Raises:
        re.error: The pattern is invalid.
        RecursionError: It is nested too deeply.
        OverflowError: It has too large a repeat count.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return re.compile(pattern, flags)


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


def _find(pattern: str, text: str, flags: int) -> int | None:
    match = compile_pattern(pattern, flags).search(text, 0, MAX_TEXT)
    return match.start() if match else None
