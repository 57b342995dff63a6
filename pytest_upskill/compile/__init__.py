"""Build and run the code of answers in a sandbox."""

from pytest_upskill.compile.command import Command, Probes
from pytest_upskill.compile.compilers import Compilers
from pytest_upskill.compile.toolchain import (
    Built,
    CannotCompile,
    Language,
    Repeatable,
    Runner,
    Sources,
    Toolchain,
    homes_of,
    write_sources,
)

__all__ = [
    "Built",
    "CannotCompile",
    "Command",
    "Compilers",
    "Language",
    "Probes",
    "Repeatable",
    "Runner",
    "Sources",
    "Toolchain",
    "homes_of",
    "write_sources",
]
