"""Checks that build or run the code of an answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class AtMost:
    """A limit on the registers per thread, or on the bytes of memory, of every kernel."""

    name: Literal["max_registers", "max_spill_bytes", "max_shared_bytes"]
    most: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Instruction:
    """A text that the PTX or the SASS of the build must contain."""

    name: Literal["ptx_contains", "sass_contains"]
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Compile:
    """A check that the answer's code in a language compiles."""

    name: ClassVar[str] = "compile"

    language: str
    """A registered language: ``python``, ``c``, ``cpp`` or ``cuda``."""
    arch: str | None = None
    """CUDA architecture; None for ``sm_90``."""
    flags: tuple[str, ...] = ()
    """Extra compiler flags from the case, such as ``-std=c++20``."""
    files: Mapping[str, str] = field(default_factory=dict)
    """Headers from the case: relative name to text."""
    host: bool = False
    """Whether the host code of CUDA must build too, which doubles the time."""
    headers: tuple[str, ...] = ()
    """Headers of libraries that the code needs; if one is missing, the check is undecided."""
    requires: tuple[AtMost | Instruction, ...] = ()
    """Requirements for the device code, each with a result of its own."""
    file: tuple[str, ...] = ()
    """Files of an agent's workspace to build instead of the answer's code."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A check that the answer's code passes the case's test code; both run in a sandbox."""

    name: ClassVar[str] = "run"

    language: str
    """A language with a runner: ``python``, or a language of a plugin."""
    code: str
    """The test code; it fails by raising."""
    file: tuple[str, ...] = ()
    """Files of an agent's workspace to test, on a copy of it, instead of the answer's code."""


Sandboxed = Compile | Run
"""A check that builds or runs the code of an answer."""
