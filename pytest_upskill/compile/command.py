"""One compiler command, run on each file of an answer."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

from pytest_upskill.checks.blocks import Block
from pytest_upskill.compile import diagnostics, provenance
from pytest_upskill.compile.once import Memo
from pytest_upskill.compile.toolchain import Built, CannotCompile, Sources, write_sources
from pytest_upskill.sandbox.run import Limits, Outcome, Sandbox
from pytest_upskill.sandbox.workspace import Workspace, workspace

LIMITS = Limits()
"""For all files of an answer together, where it is of time; for each compiler where not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A compiler and how it is called."""

    label: str
    """Name, version and target for messages."""
    program: Path
    options: tuple[str, ...]
    """Go before the file to compile."""
    suffix: str
    """Of a file that the answer does not name."""
    smallest: str
    """A program that this command builds on any machine that can build at all."""
    homes: tuple[Path, ...]
    """Folders that the compiler and its parts are installed in."""
    keep: tuple[str, ...] = ()
    """Suffixes of the files that the caller wants to look at, of those it leaves in ``tmp``."""
    listing: tuple[str, ...] = ()
    """Options that make it list the files it includes, as GCC's ``-H`` does."""
    path: tuple[Path, ...] = ()
    """Folders in which it looks for other programs, besides its own."""

    def build(self, sources: Sources, sandbox: Sandbox, probes: Probes) -> Built:
        """Build each unit until one fails.

        Raises:
            CannotCompile: It fails for a reason that the answer has no part in.
            SandboxError: The compiler cannot be started.
        """
        built = self._build(sources, sandbox)
        if not built.passed:
            probes.require(self, sandbox)
        return built

    def builds_smallest(self, sandbox: Sandbox) -> Built:
        """Build a program that nothing can be wrong with."""
        return self._build(_sources(self.smallest), sandbox)

    def missing_header(
        self, headers: Iterable[str], files: Mapping[str, str], sandbox: Sandbox, probes: Probes
    ) -> str | None:
        """Return the first header that the compiler does not find, None if it finds them all.

        Args:
            headers: Names as between the brackets of an ``#include``.
            files: Headers of the case, which are found too.
            sandbox: Where the compiler runs.
            probes: What is known to build.

        Raises:
            CannotCompile: Not even the smallest program builds.
            SandboxError: The compiler cannot be started.
        """
        for header in headers:
            code = f"#if !__has_include(<{header}>)\n#error it is missing\n#endif\n{self.smallest}"
            if not self.build(_sources(code, files), sandbox, probes).passed:
                return header
        return None

    def _build(self, sources: Sources, sandbox: Sandbox) -> Built:
        deadline = time.monotonic() + LIMITS.wall_s
        said: list[str] = []
        kept: list[bytes] = []
        with workspace() as home:
            try:
                units = write_sources(home, sources, self.suffix)
            except OSError as error:
                message = f"the answer's file names clash: {error.strerror}"
                return Built(passed=False, compiler=self.label, message=message)
            for unit in units:
                outcome, lines = self._compile(unit, home, sandbox, deadline)
                said += lines
                if not outcome.succeeded:
                    return Built(
                        passed=False,
                        compiler=self.label,
                        message=diagnostics.why(outcome, lines, LIMITS),
                        diagnostics=(*said,),
                        lasting=diagnostics.finds_fault(outcome, lines),
                    )
                kept += self._kept(home)
        return Built(
            passed=True,
            compiler=self.label,
            message="builds",
            diagnostics=(*said,),
            kept=(*kept,),
            lasting=True,
        )

    def _compile(
        self, unit: str, home: Workspace, sandbox: Sandbox, deadline: float
    ) -> tuple[Outcome, list[str]]:
        """Compile a file; once more where it fails for no fault in it: the machine's, perhaps."""
        outcome, lines = self._compile_once(unit, home, sandbox, deadline)
        clear = outcome.succeeded or diagnostics.finds_fault(outcome, lines)
        if clear or outcome.ended != "exited":
            return outcome, lines
        return self._compile_once(unit, home, sandbox, deadline)

    def _compile_once(
        self, unit: str, home: Workspace, sandbox: Sandbox, deadline: float
    ) -> tuple[Outcome, list[str]]:
        left_s = max(0.0, deadline - time.monotonic())
        hides = sandbox.level in {"bwrap", "landlock"}
        most = LIMITS.output_bytes
        outcome = sandbox.run(
            [str(self.program), *self.options, *(() if hides else self.listing), unit],
            home,
            readable=self.homes,
            path=(self.program.parent, *self.path),
            limits=replace(
                LIMITS,
                wall_s=left_s,
                output_bytes=most if hides else most + provenance.LISTING_BYTES,
            ),
        )
        if not hides:
            outcome = provenance.without_secrets(
                outcome,
                home,
                (*provenance.PUBLIC, *(f"{folder}/" for folder in self.homes)),
                most=most,
            )
        return outcome, diagnostics.read(outcome, home)

    def _kept(self, home: Workspace) -> Iterator[bytes]:
        """Take the files to keep out of the way of the next unit."""
        for file in sorted((home.root / "tmp").iterdir()):
            if file.suffix in self.keep:
                yield file.read_bytes()
                file.unlink()


def _sources(code: str, files: Mapping[str, str] = MappingProxyType({})) -> Sources:
    block = Block(language="", name=None, code=code, line=1, closed=True)
    return Sources(units=(block,), headers=(), files=files)


class Probes:
    """Remembers which commands build anything at all."""

    def __init__(self) -> None:
        self._tried = Memo[Command, Built]()

    def require(self, command: Command, sandbox: Sandbox) -> None:
        """Make sure that it is not the machine that fails.

        Raises:
            CannotCompile: Not even the smallest program builds.
        """
        smallest = self._tried.get(command, lambda: command.builds_smallest(sandbox))
        if not smallest.passed:
            raise CannotCompile(
                f"{command.label} cannot build even an empty program here: {smallest.message}"
            )
