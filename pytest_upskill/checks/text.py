"""Checks of what stands in an answer, whatever the case of the letters."""

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
    """The answer holds ``text``, whatever the case of the letters."""

    name: ClassVar[str] = "contains"

    text: str

    def check(self, text: str) -> CheckResult:
        """Look for the text."""
        if self.text.casefold() in text.casefold():
            return passed(self.name, f" {quoted(self.text)}: in the answer")
        return failed(self.name, f" {quoted(self.text)}: not in {summary(text)}")


@dataclass(frozen=True, slots=True, kw_only=True)
class NotContains:
    """The answer does not hold ``text``, whatever the case of the letters."""

    name: ClassVar[str] = "not_contains"

    text: str

    def check(self, text: str) -> CheckResult:
        """Look for the text."""
        folded = text.casefold()
        start = folded.find(self.text.casefold())
        if start < 0:
            return passed(self.name, f" {quoted(self.text)}: not in the answer")
        # Folding moves columns a little, but never a line.
        place = excerpt(text, *line_column(folded, start))
        return failed(self.name, f" {quoted(self.text)}: found in {place}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainsAny:
    """The answer holds at least one of ``texts``, whatever the case of the letters."""

    name: ClassVar[str] = "contains_any"

    texts: tuple[str, ...]

    def check(self, text: str) -> CheckResult:
        """Look for each of the texts."""
        folded = text.casefold()
        for wanted in self.texts:
            if wanted.casefold() in folded:
                return passed(self.name, f" {quoted(wanted)}: in the answer")
        wanted = cut(", ".join(map(quoted, self.texts)), 80)
        return failed(self.name, f" {wanted}: none in {summary(text)}")
