"""Checks: one assertion about an answer, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Protocol


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Compile:
    """The answer's code in ``language`` must build; a compiler decides, in a child process."""

    name: ClassVar[str] = "compile"

    language: str
    """A registered language: ``python``, ``c``, ``cpp`` or ``cuda``."""
    arch: str | None = None
    """CUDA architecture, ``sm_90`` unless given."""
    flags: tuple[str, ...] = ()
    """Extra compiler flags of the case's author, such as ``-std=c++20``."""
    files: Mapping[str, str] = field(default_factory=dict)
    """Headers the case supplies: relative name to text."""
