"""Checks for text in an answer, ignoring case."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pytest_upskill.checks.result import (
    CheckResult,
    cut,
    excerpt,
    failed,
    line_column,
    passed,
    quoted,
    summary,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Contains:
    """A check that the answer contains a text, ignoring case."""

    name: ClassVar[str] = "contains"

    text: str

    def check(self, text: str) -> CheckResult:
        """Search for the text."""
        if self.text.casefold() in text.casefold():
            return passed(self.name, f" {quoted(self.text)}: in the answer")
        return failed(self.name, f" {quoted(self.text)}: not in {summary(text)}")


@dataclass(frozen=True, slots=True, kw_only=True)
class NotContains:
    """A check that the answer does not contain a text, ignoring case."""

    name: ClassVar[str] = "not_contains"

    text: str

    def check(self, text: str) -> CheckResult:
        """Search for the text."""
        folded = text.casefold()
        start = folded.find(self.text.casefold())
        if start < 0:
            return passed(self.name, f" {quoted(self.text)}: not in the answer")
        # Case folding may shift columns a little, but never lines.
        place = excerpt(text, *line_column(folded, start))
        return failed(self.name, f" {quoted(self.text)}: found in {place}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainsAny:
    """A check that the answer contains at least one of several texts, ignoring case."""

    name: ClassVar[str] = "contains_any"

    texts: tuple[str, ...]

    def check(self, text: str) -> CheckResult:
        """Search for each of the texts."""
        folded = text.casefold()
        for candidate in self.texts:
            if candidate.casefold() in folded:
                return passed(self.name, f" {quoted(candidate)}: in the answer")
        texts = cut(", ".join(map(quoted, self.texts)), 80)
        return failed(self.name, f" {texts}: none in {summary(text)}")
