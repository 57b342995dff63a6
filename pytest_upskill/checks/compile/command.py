"""Languages, and the compilers that are run on each file of an answer."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from pytest_upskill.checks.builds import Compile
from pytest_upskill.checks.compile import diagnostics
from pytest_upskill.checks.compile.toolchain import (
    Built,
    CannotCompile,
    Runner,
    Sources,
    write_sources,
)
from pytest_upskill.sandbox.limits import Limits
from pytest_upskill.sandbox.run import Outcome, Sandbox
from pytest_upskill.sandbox.workspace import Workspace, workspace

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
        hides = sandbox.hides_files or not self.reads_files
        shown: list[str] = []
        printed: list[str] = []
        kept: list[bytes] = []
        with workspace() as home:
            try:
                units = write_sources(home, sources, self.suffix)
            except OSError as error:
                message = f"the answer's file names clash: {error.strerror}"
                return Built(passed=False, compiler=self.label, message=message)
            for unit in units:
                outcome = self._compile(unit, home, sandbox, deadline)
                lines = diagnostics.read(outcome)
                printed += lines
                lines = lines if hides else diagnostics.places(outcome, home)
                shown += lines
                if not outcome.succeeded:
                    return Built(
                        passed=False,
                        compiler=self.label,
                        message=diagnostics.failure_reason(outcome, lines, LIMITS),
                        diagnostics=(*shown,),
                    )
                kept += self._take_outputs(home)
        return Built(
            passed=True,
            compiler=self.label,
            message="builds",
            diagnostics=(*shown,),
            printed=(*printed,),
            kept=(*kept,),
        )

    def _compile(self, unit: str, home: Workspace, sandbox: Sandbox, deadline: float) -> Outcome:
        """Compile a file; retry once if the compiler exits without blaming the code."""
        outcome = self._compile_once(unit, home, sandbox, deadline)
        if outcome.succeeded or outcome.ended != "exited" or diagnostics.finds_fault(outcome):
            return outcome
        return self._compile_once(unit, home, sandbox, deadline)

    def _compile_once(
        self, unit: str, home: Workspace, sandbox: Sandbox, deadline: float
    ) -> Outcome:
        return sandbox.run(
            [str(self.program), *self.options, unit],
            home,
            readable=self.homes,
            path=(self.program.parent, *self.path),
            limits=replace(LIMITS, wall_s=max(0.0, deadline - time.monotonic())),
        )

    def _take_outputs(self, home: Workspace) -> Iterator[bytes]:
        """Yield the contents of the files to keep, and remove them before the next unit."""
        for file in sorted((home.root / "tmp").iterdir()):
            if file.suffix in self.keep:
                yield file.read_bytes()
                file.unlink()


class Compiler(ABC):
    """A toolchain for one language that runs one command on each file.

    There is one per session, called from several threads.
    """

    def __init__(self) -> None:
        self._smallest: dict[Command, Built] = {}

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
        if not built.passed:
            smallest = self._smallest.get(command)
            if smallest is None:
                smallest = command.build(Sources.of(command.smallest), sandbox)
                self._smallest[command] = smallest
            if not smallest.passed:
                raise CannotCompile(
                    f"{command.label} cannot build even an empty program here: {smallest.message}"
                )
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
