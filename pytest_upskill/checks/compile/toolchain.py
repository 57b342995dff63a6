"""Toolchains: languages, the compilers that build an answer, and what these say of it.

Where a sandbox cannot hide files, only the places are shown of code that may name one to read. An
``#include`` makes any file part of the code, and compilers quote code: lines, names, types (also
those of other lines, after ``aka``), values and messages.
"""

import re
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from pytest_upskill.checks import CheckResult
from pytest_upskill.checks.blocks import Block
from pytest_upskill.checks.code import CannotCompile, Compile
from pytest_upskill.checks.files import WorkspaceFile
from pytest_upskill.sandbox.limits import Limits
from pytest_upskill.sandbox.run import Outcome, Sandbox, Workspace, workspace


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """The files of one build."""

    units: tuple[Block, ...]
    """Blocks of the answer to compile, at least one."""
    headers: tuple[Block, ...] = ()
    """Blocks of the answer that the units may include."""
    files: Mapping[str, str] = field(default_factory=dict)
    """Headers of the case: relative name to text."""
    workspace: tuple[WorkspaceFile, ...] = ()
    """The files that an agent left, to run the units on a copy of them."""


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


LIMITS = Limits()
"""Limits of each compiler process; the limit of wall time is for all files of an answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A compiler with its options.

    What it prints should be like GCC's: `Command.build` says what it reads of it.
    """

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
        """Build each unit until one fails.

        A line with ``error:`` says why; without one, a failure is tried once more, and the first
        line is its reason. ``../src/FILE:LINE`` becomes the line of the answer.
        """
        deadline = time.monotonic() + LIMITS.wall_s
        code = "\n".join(block.code for block in (*sources.units, *sources.headers))
        # A compiler may read a file of the machine, and quote it.
        may_quote = self.reads_files and _READS_FILES.search(_SPLICE.sub("", code)) is not None
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
                lines = _read_diagnostics(outcome)
                printed += lines
                if may_quote and not sandbox.hides_files:
                    lines = _places(outcome, home)
                shown += lines
                if not outcome.succeeded:
                    failure = _failure_reason(outcome, lines)
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
            if not (may_repeat and has_failed) or _finds_fault(outcome):
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
            smallest = command.build(Sources(units=(Block(code=command.smallest),)), sandbox)
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


# Diagnostics, with places that refer to lines of the answer.

_LONGEST_LINE = 300
_SIGNALS = range(129, 160)  # exit statuses by which a shell, and the sandbox, reports them

_ANSWERS_LINE = re.compile(r"\.\./src/([^\s:(),\"]{1,300})[:(](\d+)(?::\d+)?\)?")
# Names of temporary files change between runs, and lines of generated assembly mean nothing.
_ASSEMBLY = re.compile(
    r"(?<![\w./-])(?:ptxas )?(?:\.\./)?tmp/[^\s:,]{1,300}(?:, line \d+;|:\d+:|:) ?"
)
_ERROR = re.compile(r"(?!\s).*?\b(?:fatal|error)\s*(?:(?:#[\w-]+|\[\w+\])\s*)?:", re.IGNORECASE)
# A part of the compiler was killed, or the machine is out of a resource.
_TROUBLE = re.compile(
    r"due to signal|signal terminated|: Killed\b|out of memory|memory exhausted"
    r"|[Cc]annot allocate memory|bad_alloc|Resource temporarily unavailable|No space left on device"
)


def _read_diagnostics(outcome: Outcome) -> list[str]:
    """Return a compiler's diagnostics with the answer's own line numbers."""
    text = _ANSWERS_LINE.sub(lambda match: place_in_answer(*match.groups()), outcome.output)
    text = _ASSEMBLY.sub("assembly: ", text).replace("../src/", "").replace("../include/", "")
    return [line for line in text.splitlines() if line.strip()]


def _failure_reason(outcome: Outcome, lines: Sequence[str]) -> str:
    """Return in one line why a build failed.

    Args:
        outcome: The outcome of the compiler.
        lines: Its diagnostics, from `_read_diagnostics`.

    Raises:
        CannotCompile: The session ended first.
    """
    if limit := limit_reached(outcome, LIMITS):
        return limit
    if first := next((line for line in lines if _ERROR.match(line)), None):
        return first[:_LONGEST_LINE]
    if crashed(outcome):
        return "the compiler crashed, or exceeded its memory or time limit"
    return lines[0][:_LONGEST_LINE] if lines else "the compiler gives no reason"


def limit_reached(outcome: Outcome, limits: Limits) -> str | None:
    """Return in one line at which limit a program was ended, None if it ended by itself.

    Raises:
        CannotCompile: The session ended first.
    """
    match outcome.ended:
        case "exited":
            return None
        case "stopped":
            raise CannotCompile("the session ended before the check was decided")
        case "time":
            return f"it takes more than {limits.wall_s:g} s"
        case "output":
            return f"it prints more than {limits.output_bytes >> 10} KiB"
        case "files":
            return f"it writes more than {limits.folder_bytes >> 20} MiB or {limits.files} files"


def crashed(outcome: Outcome) -> bool:
    """Return whether a program was ended by a signal, as a limit of memory or CPU time sends it."""
    return outcome.returncode < 0 or outcome.returncode in _SIGNALS


def _finds_fault(outcome: Outcome) -> bool:
    """Return whether a compiler blames the code, so that a retry would fail too."""
    return not all(map(_TROUBLE.search, filter(_ERROR.match, _read_diagnostics(outcome))))


def place_in_answer(name: str, line: str) -> str:
    """Return how a line of a file of the answer is called."""
    where = f"answer line {line}"
    return where if name.startswith("answer.") else f"{name} ({where})"


_SPLICE = re.compile(r"(?:\\|\?\?/)\s*?\n")
# A header by its plain name is in a folder of headers, or the answer's own. Only what may be a
# directive is looked at; a comment between its sign and its name is no plain one.
_READS_FILES = re.compile(
    r"\b_*asm|(?:#|%:|\?\?=)\s*"
    r"(?:/|\d|line|embed|import|include(?!\s*[<\"][\w+-]+(?:[./][\w+-]+)*[>\"]))"
)


_PLACE = re.compile(rf"{_ANSWERS_LINE.pattern}: *((?:fatal )?error|warning)", re.IGNORECASE)
_LEFT_OUT = "its text is left out, as the code may read files that no sandbox hides here"


def _places(outcome: Outcome, home: Workspace) -> list[str]:
    """Return where the diagnostics of a compiler are in the answer, and nothing else of them."""
    lines = [
        f"{place_in_answer(match[1], match[2])}: {match[3].lower()}: {_LEFT_OUT}"
        for match in filter(None, map(_PLACE.match, outcome.output.splitlines()))
        if (home.root / "src" / match[1]).is_file()
    ]
    if lines or outcome.succeeded:
        return lines
    out_of_memory = "the compiler was killed, or ran out of memory"
    return [f"error: {out_of_memory if _TROUBLE.search(outcome.output) else _LEFT_OUT}"]
