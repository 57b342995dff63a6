"""The interface of builds and runners, and functions that all toolchains share."""

from __future__ import annotations

import importlib.util
import os
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Protocol

from pytest_upskill.checks import CheckError, CheckResult
from pytest_upskill.checks.blocks import Block
from pytest_upskill.checks.files import WorkspaceFile
from pytest_upskill.sandbox.run import Sandbox
from pytest_upskill.sandbox.workspace import Workspace


class CannotCompile(CheckError):  # noqa: N818 - not an error of the answer or the case
    """A check that this machine cannot decide; the message says why in one line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """The files of one build."""

    units: tuple[Block, ...]
    """Blocks of the answer to compile, at least one."""
    headers: tuple[Block, ...]
    """Blocks of the answer that the units may include."""
    files: Mapping[str, str]
    """Headers of the case: relative name to text."""
    workspace: tuple[WorkspaceFile, ...] = ()
    """The files that an agent left, to run the units on a copy of them."""

    @classmethod
    def of(cls, code: str, files: Mapping[str, str] = MappingProxyType({})) -> Sources:
        """Return a program of one file that no answer has."""
        block = Block(language="", name=None, code=code, line=1, closed=True)
        return cls(units=(block,), headers=(), files=files)


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """The result of a build or a test run."""

    passed: bool
    compiler: str
    """Name, version and target: ``nvcc 13.0 for sm_90``."""
    message: str
    """One line: the first error, or what was built."""
    diagnostics: tuple[str, ...] = ()
    """All diagnostics, with line numbers of the answer."""
    printed: tuple[str, ...] = ()
    """All that a build printed, with the files of the user that it may quote: never shown."""
    kept: tuple[bytes, ...] = ()
    """Contents of the generated files that the caller requested."""
    required: tuple[CheckResult, ...] = ()
    """The results of the check's ``requires``."""


class Runner(Protocol):
    """A runner for one language; there is one per session, called from several threads."""

    def missing(self) -> str | None:
        """Return in one line what is missing on this machine, None if nothing is.

        It must not run any program.
        """
        ...

    def run(self, sources: Sources, code: str, sandbox: Sandbox) -> Built:
        """Run test code on the code of an answer; called only if nothing is `missing`.

        Args:
            sources: The files of the answer.
            code: The test code.
            sandbox: The sandbox for the programs.

        Raises:
            CannotCompile: The outcome does not depend on the answer.
            SandboxError: A program cannot be started.
        """
        ...


def write_sources(home: Workspace, sources: Sources, suffix: str) -> list[str]:
    """Write the answer's files to ``src`` and the case's to ``include``.

    Each file starts with as many empty lines as the answer has above the block, so that line
    numbers in diagnostics are those of the answer.

    Args:
        home: The workspace.
        sources: The files; a header of the case replaces the answer's header of that name.
        suffix: Suffix of a unit without a name, such as ``.cu``.

    Returns:
        The paths of the units, as the compiler sees them.

    Raises:
        OSError: File names clash, such as ``a.h`` and ``a.h/b.h``.
    """
    for name, text in sources.files.items():
        home.write(f"include/{name}", text)
    for header in sources.headers:
        if header.name not in sources.files:
            home.write(f"src/{header.name}", _at_own_line(header))
    return [
        home.write(f"src/{unit.name or 'answer' + suffix}", _at_own_line(unit))
        for unit in sources.units
    ]


def run_trusted(program: Path, *arguments: str) -> str:
    """Return the output of a trusted program outside the sandbox, "" if it fails to run.

    It must not read any part of an answer. It has 20 seconds.
    """
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
    """Return the folders of installed programs, such as ``/opt/gcc`` for ``/opt/gcc/bin/gcc``.

    The user's home folder and its parents are left out: a compiler in ``~/bin`` must not make
    them readable in the sandbox.
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
    """Yield the paths of a program in NVIDIA's wheels, which are not on ``PATH``."""
    if nvidia := importlib.util.find_spec("nvidia"):
        for folder in nvidia.submodule_search_locations or ():
            yield from sorted(Path(folder).glob(f"cu[0-9]*/bin/{name}"), reverse=True)


def _at_own_line(block: Block) -> str:
    return "\n" * (block.line - 1) + block.code
