"""C and C++ with GCC, or Clang if there is no GCC."""

from __future__ import annotations

import re
import shutil
from functools import cached_property
from pathlib import Path
from typing import Literal

from pytest_upskill.checks.code import Compile
from pytest_upskill.checks.compile.toolchain import (
    Built,
    Command,
    Compiler,
    Sources,
    homes_of,
    run_trusted,
)
from pytest_upskill.sandbox.run import Sandbox

_PROGRAMS = {"c": ("gcc", "clang", "cc"), "cpp": ("g++", "clang++", "c++")}
_VERSION = re.compile(r"\d+\.\d+")
# Newer compilers reject these in C, older ones only warn: reject them everywhere.
_STRICT_C = (
    "-Werror=implicit-function-declaration",
    "-Werror=implicit-int",
    "-Werror=int-conversion",
    "-Werror=incompatible-pointer-types",
)
_TEMPLATES = ("c++", "-ftemplate-depth=256", "-ftemplate-backtrace-limit=4")
_GCC = ("-fmax-errors=20", "-fmax-include-depth=64", "-fdiagnostics-color=never")
_CLANG = ("-ferror-limit=20", "-fno-color-diagnostics")
# The last option limits the computation of constants.
_GCC_CPP = (*_TEMPLATES, "-fconstexpr-ops-limit=20000000")
_CLANG_CPP = (*_TEMPLATES, "-fconstexpr-steps=20000000")
_COMMENT = re.compile(r"/\*.*?(?:\*/|\Z)|//[^\n]*", re.DOTALL)
_EMPTY_PROGRAM = "int main(void) { return 0; }\n"


class Gnu(Compiler):
    """A toolchain that compiles C or C++ to an object file without optimization.

    ``-fsyntax-only`` would be faster but misses errors in inline assembly and forced inlining.
    """

    def __init__(self, language: Literal["c", "cpp"]) -> None:
        super().__init__()
        self._language = language
        self._program = find_program(language)

    def missing(self, check: Compile) -> str | None:  # noqa: ARG002 - the same for every check
        """See `Compiler.missing`."""
        if self._program:
            return None
        return f"no {' or '.join(_PROGRAMS[self._language][:2])} on PATH: install one"

    def build(self, sources: Sources, check: Compile, sandbox: Sandbox) -> Built:
        """See `Compiler.build`."""
        if not any(_COMMENT.sub("", unit.code).strip() for unit in sources.units):
            message = "it contains only comments"
            return Built(passed=False, compiler=self._version[0], message=message)
        return super().build(sources, check, sandbox)

    def command(self, check: Compile) -> Command:
        """See `Compiler.command`."""
        assert self._program is not None
        label, is_clang = self._version
        common, of_cpp = (_CLANG, _CLANG_CPP) if is_clang else (_GCC, _GCC_CPP)
        return Command(
            label=label,
            program=self._program,
            options=(
                *("-c", "-O0", *common),
                *("-x", *(("c", *_STRICT_C) if self._language == "c" else of_cpp)),
                *("-iquote", "../src", "-I", "../include", "-o", "../tmp/object"),
                *check.flags,
            ),
            suffix=f".{self._language}",
            smallest=_EMPTY_PROGRAM,
            homes=homes_of([self._program]),
        )

    @cached_property
    def _version(self) -> tuple[str, bool]:
        """The name of the compiler with its version, and whether it is Clang."""
        output = run_trusted(self._program, "--version") if self._program else ""
        version, is_clang = _VERSION.search(output), "clang" in output
        name = _PROGRAMS[self._language][is_clang]
        return f"{name} {version[0] if version else '(unknown version)'}", is_clang


def find_program(language: Literal["c", "cpp"]) -> Path | None:
    """Return the path of a compiler on ``PATH``, None if there is none."""
    found = next(filter(None, map(shutil.which, _PROGRAMS[language])), None)
    return Path(found).absolute() if found else None
