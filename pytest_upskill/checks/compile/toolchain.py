"""Toolchains: languages, the compilers that build an answer, and what they share."""

from __future__ import annotations

import os
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Protocol

from pytest_upskill.checks import CheckResult
from pytest_upskill.checks.blocks import Block
from pytest_upskill.checks.code import CannotCompile, Compile
from pytest_upskill.checks.compile import diagnostics
from pytest_upskill.checks.files import WorkspaceFile
from pytest_upskill.sandbox.limits import Limits
from pytest_upskill.sandbox.run import Outcome, Sandbox, Workspace, workspace


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
    headers = [header for header in sources.headers if header.name not in sources.files]
    written = [
        home.write(f"src/{block.name or 'answer' + suffix}", "\n" * (block.line - 1) + block.code)
        for block in (*headers, *sources.units)
    ]
    return written[len(headers) :]


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


LIMITS = Limits()
"""Limits of each compiler process; the limit of wall time is for all files of an answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A compiler with its options."""

    label: str
    """Name, version and target for messages."""
    program: Path
    options: tuple[str, ...]
    """Arguments before the file to compile."""
    suffix: str
    """Suffix of a file that the answer does not name."""
    smallest: str
    """A minimal program, which every working installation of the compiler builds."""
    homes: tuple[Path, ...]
    """Folders in which the compiler and its parts are installed."""
    keep: tuple[str, ...] = ()
    """Suffixes of the files in ``tmp`` to return in `Built.kept`."""
    reads_files: bool = True
    """Whether code can name files for it to read, as ``#include`` does."""
    path: tuple[Path, ...] = ()
    """Folders in which the compiler searches for other programs, besides its own folder."""

    def build(self, sources: Sources, sandbox: Sandbox) -> Built:
        """Build each unit until one fails."""
        deadline = time.monotonic() + LIMITS.wall_s
        code = "\n".join(block.code for block in (*sources.units, *sources.headers))
        may_quote = self.reads_files and diagnostics.may_read_files(code)
        shown: list[str] = []
        printed: list[str] = []
        kept: list[bytes] = []
        failure = ""
        with workspace() as home:
            try:
                units = write_sources(home, sources, self.suffix)
            except OSError as error:
                units, failure = [], f"the answer's file names clash: {error.strerror}"
            for unit in units:
                outcome = self._compile(unit, home, sandbox, deadline)
                lines = diagnostics.read(outcome)
                printed += lines
                if may_quote and not sandbox.hides_files:
                    lines = diagnostics.places(outcome, home)
                shown += lines
                if not outcome.succeeded:
                    failure = diagnostics.failure_reason(outcome, lines, LIMITS)
                    break
                # Before the next unit, whose files may have the same names.
                for suffix in self.keep:
                    kept += map(Path.read_bytes, sorted(home.root.glob(f"tmp/*{suffix}")))
        return Built(
            passed=not failure,
            compiler=self.label,
            message=failure or "builds",
            diagnostics=(*shown,),
            printed=(*printed,),
            kept=(*kept,),
        )

    def _compile(self, unit: str, home: Workspace, sandbox: Sandbox, deadline: float) -> Outcome:
        """Compile a file, once more if the compiler exits without blaming the code."""
        for may_repeat in (True, False):
            outcome = sandbox.run(
                [str(self.program), *self.options, unit],
                home,
                readable=self.homes,
                path=(self.program.parent, *self.path),
                limits=replace(LIMITS, wall_s=max(0.0, deadline - time.monotonic())),
            )
            has_failed = outcome.ended == "exited" and outcome.returncode != 0
            if not (may_repeat and has_failed) or diagnostics.finds_fault(outcome):
                break
        return outcome


class Compiler(ABC):
    """A toolchain for one language that runs one command on each file.

    There is one per session, called from several threads.
    """

    def __init__(self) -> None:
        self._working: set[Command] = set()
        """The commands that have built a minimal program here."""

    @abstractmethod
    def command(self, check: Compile) -> Command:
        """Return the command with the options of a check; called only if nothing is missing."""

    def missing(self, check: Compile) -> str | None:  # noqa: ARG002 - the same for every check
        """Return in one line what is missing on this machine for ``check``, None if nothing is.

        It must not run any program.
        """
        return None

    def build(self, sources: Sources, check: Compile, sandbox: Sandbox) -> Built:
        """Build the sources; called only if nothing is `missing`.

        Args:
            sources: The files to build.
            check: The options of the build.
            sandbox: The sandbox for the compiler.

        Raises:
            CannotCompile: The outcome does not depend on the answer.
            SandboxError: A program cannot be started.
        """
        command = self.command(check)
        built = command.build(sources, sandbox)
        if not built.passed and command not in self._working:
            smallest = command.build(Sources.of(command.smallest), sandbox)
            if not smallest.passed:
                raise CannotCompile(
                    f"{command.label} cannot build even an empty program here: {smallest.message}"
                )
            self._working.add(command)
        return built


@dataclass(frozen=True, slots=True, kw_only=True)
class Language:
    """A language with its toolchain and its runner."""

    name: str
    """The name in ``compile`` and ``run`` checks, in lower case: ``rust``."""
    labels: tuple[str, ...] = ()
    """Further labels of code fences, and file suffixes: ``rs``."""
    toolchain: Compiler | None = None
    """Decides ``compile`` checks; None if there is no support for them."""
    runner: Runner | None = None
    """Decides ``run`` checks; None if there is no support for them."""

    @property
    def spellings(self) -> tuple[str, ...]:
        """The name and all labels."""
        return (self.name, *self.labels)
