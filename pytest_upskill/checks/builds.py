"""Checks that a program decides: the answer's code is built, or run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class AtMost:
    """No kernel of the build may use more than ``most`` of something."""

    name: Literal["max_registers", "max_spill_bytes", "max_shared_bytes"]
    most: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Instruction:
    """The build's PTX, or the SASS made of it, must hold ``text``."""

    name: Literal["ptx_contains", "sass_contains"]
    text: str


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
    host: bool = False
    """Whether the host's half of CUDA code must build too; that takes twice the time."""
    headers: tuple[str, ...] = ()
    """Headers of libraries that the code needs; where one is missing, nothing can be decided."""
    requires: tuple[AtMost | Instruction, ...] = ()
    """What else must be true of the device code; each has a result of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """The answer's code must pass the case's test code; both are run, in a sandbox."""

    name: ClassVar[str] = "run"

    language: str
    """A language with a runner: ``python``, or a plugin's."""
    code: str
    """The test code; it fails by raising."""


Sandboxed = Compile | Run
"""A check that a program decides, on the answer's code."""
