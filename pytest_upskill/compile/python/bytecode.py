"""Python with the interpreter that runs pytest, in a separate process: parsing can crash it."""

from __future__ import annotations

import platform
import sys

from pytest_upskill.checks import Compile
from pytest_upskill.compile.command import Command, Probes
from pytest_upskill.compile.toolchain import Built, Sources
from pytest_upskill.sandbox.interpreter import PYTHON, PYTHON_FOLDERS
from pytest_upskill.sandbox.run import Sandbox

# Reads the file as UTF-8, ignoring any declared encoding, and prints errors like a compiler.
_COMPILE = """
import sys
from _ast import PyCF_ONLY_AST
name = sys.argv[1]
with open(name, "rb") as file:
    text = file.read().decode()
try:
    if not compile(text, name, "exec", PyCF_ONLY_AST, True).body:
        sys.exit("it contains only comments")
    compile(text, name, "exec", dont_inherit=True)
except SyntaxError as error:
    print(f"{name}:{error.lineno or 1}: error: {type(error).__name__}: {error.msg}")
    print("    " + (error.text or "").strip()[:200])
    sys.exit(1)
except (ValueError, OverflowError, MemoryError, RecursionError) as error:
    sys.exit(f"error: {type(error).__name__}: {error}")
"""


class Python:
    """A toolchain that compiles Python to bytecode without running it."""

    def __init__(self) -> None:
        self._probes = Probes()

    def missing(self, check: Compile) -> str | None:  # noqa: ARG002 - the same for every check
        """See `Toolchain.missing`."""
        return None

    def build(self, sources: Sources, check: Compile, sandbox: Sandbox) -> Built:  # noqa: ARG002 - takes no options
        """See `Toolchain.build`."""
        return self._command.build(sources, sandbox, self._probes)

    def identity(self, check: Compile) -> str:  # noqa: ARG002 - takes no options
        """See `Repeatable.identity`."""
        return repr((self._command, sys.version))

    @property
    def _command(self) -> Command:
        return Command(
            label=f"Python {platform.python_version()}",
            program=PYTHON,
            options=("-I", "-S", "-W", "ignore", "-c", _COMPILE),
            suffix=".py",
            smallest="pass\n",
            homes=PYTHON_FOLDERS,
        )
