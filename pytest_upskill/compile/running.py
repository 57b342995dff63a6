"""Runs of an answer's code with the test code of a case, always in the sandbox."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from pytest_upskill.compile.toolchain import Built, CannotCompile, Sources
from pytest_upskill.sandbox.run import Limits, Outcome, Sandbox

LIMITS = Limits(wall_s=30, cpu_s=30, memory_bytes=1 << 30, file_bytes=16 << 20, processes=32)

_MAX_LINE = 300
_LAST_OWN_CODE = 128  # a shell, and the sandbox, add this to the number of a signal
_SOURCE = re.compile(r'File "(?:\.\./)?(src|check)/([^"]{1,300})", line (\d+)')


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """A finished test run."""

    outcome: Outcome
    reached_end: bool
    """Whether the test code ran to its end."""
    limits: Limits = LIMITS
    """The limits under which it ran."""

    def described(self, program: str) -> Built:
        """Make the result.

        Args:
            program: The program that ran the code, such as ``Python 3.13.1``.

        Raises:
            CannotCompile: The session ended first.
        """
        lines = [_in_answer(line) for line in self.outcome.output.splitlines() if line.strip()]
        passed = self.reached_end and self.outcome.succeeded
        message = "passes" if passed else self._why(lines)
        return Built(passed=passed, compiler=program, message=message, diagnostics=tuple(lines))

    @property
    def _code(self) -> int:
        return self.outcome.returncode

    def _why(self, lines: Iterable[str]) -> str:
        match self.outcome.ended:
            case "stopped":
                raise CannotCompile("the session ended while the answer was being run")
            case "timeout":
                return f"it takes more than {self.limits.wall_s:g} s"
            case "output":
                return f"it prints more than {self.limits.output_bytes >> 10} KiB"
            case "files":
                limits = self.limits
                return (
                    f"it writes more than {limits.folder_bytes >> 20} MiB or {limits.files} files"
                )
        if self._code < 0 or self._code > _LAST_OWN_CODE:
            return "it crashed, or exceeded its memory or time limit"
        if self._code == 0:
            return "it exits before the end of the test code"
        return next(reversed([*lines]), "it fails without a message")[:_MAX_LINE]


def _in_answer(line: str) -> str:
    def place(match: re.Match[str]) -> str:
        folder, name, number = match.groups()
        if folder == "check":
            return f"test line {number}"
        where = f"answer line {number}"
        return where if name.startswith("answer.") else f"{name} ({where})"

    return _SOURCE.sub(place, line)
