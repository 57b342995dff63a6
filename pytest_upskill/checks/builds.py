"""Checks that a program decides: the answer's code is built, or run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar


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
