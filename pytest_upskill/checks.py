"""Checks: one assertion about an answer, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


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
