"""Build and run the code of answers in a sandbox."""

from pytest_upskill.checks.compile.command import Command, Compiler
from pytest_upskill.checks.compile.compilers import Compilers
from pytest_upskill.checks.compile.toolchain import (
    Built,
    CannotCompile,
    Language,
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
    "Compiler",
    "Compilers",
    "Language",
    "Runner",
    "Sources",
    "Toolchain",
    "homes_of",
    "write_sources",
]
