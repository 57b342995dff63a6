"""What a language's compiler takes and gives, and what all of them share."""

from __future__ import annotations

import importlib.util
import os
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

from pytest_upskill.checks import CheckError, CheckResult, Compile
from pytest_upskill.checks.blocks import Block
from pytest_upskill.sandbox.run import Sandbox
from pytest_upskill.sandbox.workspace import Workspace


class CannotCompile(CheckError):  # noqa: N818 - the name says it: no error of anybody
    """This machine cannot tell whether the answer builds; the message is one line that says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """The files of one build."""

    units: tuple[Block, ...]
    """Blocks of the answer to compile, at least one."""
    headers: tuple[Block, ...]
    """Blocks of the answer that those may include."""
    files: Mapping[str, str]
    """Headers of the case: relative name to text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """What a compiler said."""

    passed: bool
    compiler: str
    """Name, version and target: ``nvcc 13.0 for sm_90``."""
    message: str
    """One line: the first error, or what was built."""
    diagnostics: tuple[str, ...] = ()
    """All that it printed, in the answer's own lines."""
    kept: tuple[bytes, ...] = ()
    """Files it made that the caller asked for."""
    required: tuple[CheckResult, ...] = ()
    """What came of the check's ``requires``."""
    lasting: bool = False
    """Whether it is about the code alone: no limit, and no trouble here, had a part in it."""


class Toolchain(Protocol):
    """Builds one language; one per session, called from several threads."""

    def missing(self, check: Compile) -> str | None:
        """Tell in one line what this machine lacks for ``check``, without running anything."""
        ...

    def build(self, sources: Sources, check: Compile, sandbox: Sandbox) -> Built:
        """Build the sources; called only where nothing is `missing`.

        Raises:
            CannotCompile: The outcome would say nothing about the answer.
            SandboxError: A program cannot be started.
        """
        ...


@runtime_checkable
class Repeatable(Protocol):
    """A toolchain that says the same of the same code in every session, so asking once will do."""

    def identity(self, check: Compile) -> str:
        """Name all that decides besides the code: programs, their versions, how they are called."""
        ...


@runtime_checkable
class FindsHeaders(Protocol):
    """A toolchain that can look for the headers of libraries."""

    def missing_header(self, check: Compile, sandbox: Sandbox) -> str | None:
        """Return the first of the check's headers that the compiler does not find, else None.

        Raises:
            CannotCompile: The compiler builds nothing at all.
            SandboxError: A program cannot be started.
        """
        ...


def write_sources(home: Workspace, sources: Sources, suffix: str) -> list[str]:
    """Write the answer's files to ``src`` and the case's to ``include``.

    Each file starts with as many empty lines as the answer has above its block: so the line
    that a compiler names is the answer's own.

    Args:
        home: Where to write.
        sources: What to write; a header of the case takes the place of the answer's.
        suffix: Of a block without a name, ``.cu``.

    Returns:
        The units' paths as the compiler sees them.

    Raises:
        OSError: Names clash, as ``a.h`` and ``a.h/b.h`` do.
    """
    for name, text in sources.files.items():
        home.write(f"include/{name}", text)
    for header in sources.headers:
        if header.name not in sources.files:
            home.write(f"src/{header.name}", _in_place(header))
    return [
        home.write(f"src/{unit.name or 'answer' + suffix}", _in_place(unit))
        for unit in sources.units
    ]


def ask(program: Path, *arguments: str) -> str:
    """Run a compiler on nothing of an answer, to learn about it; empty where it does not run."""
    try:
        process = subprocess.run(  # noqa: S603 - the compiler itself is trusted
            [program, *arguments],
            env={"PATH": f"{program.parent}:/usr/bin:/bin", "LC_ALL": "C"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=20,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return process.stdout.decode("utf-8", "replace")


def homes_of(programs: Iterable[Path]) -> tuple[Path, ...]:
    """Tell the folders that programs are installed in, as ``/opt/gcc`` for ``/opt/gcc/bin/gcc``.

    The user's home is never one of them, so that a compiler in ``~/bin`` opens nothing else.
    """
    user = Path(os.path.expanduser("~")).resolve()  # noqa: PTH111 - Path.home() may raise
    folders = {
        folder
        for program in programs
        for path in (program, program.resolve())
        if (folder := path.parent.parent) not in {user, *user.parents}
    }
    return tuple(sorted(folders))


def wheel_programs(name: str) -> Iterator[Path]:
    """Find a program of NVIDIA's wheels, which put it into no folder of ``PATH``."""
    if nvidia := importlib.util.find_spec("nvidia"):
        for folder in nvidia.submodule_search_locations or ():
            yield from sorted(Path(folder).glob(f"cu[0-9]*/bin/{name}"), reverse=True)


def _in_place(block: Block) -> str:
    return "\n" * (block.line - 1) + block.code
