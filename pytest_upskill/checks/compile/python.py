"""Whether an answer is Python, and whether it passes tests, with the interpreter that runs pytest.

Both happen in the sandbox, because parsing can crash it too. The tests are counted here: a thread
of this process supervises `run_tests`, the program in the sandbox, through a socket. It first sends
a nonce, which each report must carry, and a digest of the test code; then, when the answer is
imported, the test code, which nothing can read or exchange before. A socket, unlike a pipe, cannot
be opened again by its name in ``/proc``.
"""

import hashlib
import platform
import re
import secrets
import socket
import threading
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Self

from pytest_upskill.checks.code import CannotCompile, Compile, find_tests
from pytest_upskill.checks.compile import toolchain
from pytest_upskill.sandbox.confinement import PYTHON, PYTHON_FOLDERS
from pytest_upskill.sandbox.limits import Limits
from pytest_upskill.sandbox.run import Outcome, Sandbox, Workspace, workspace
from pytest_upskill.sandbox.shell import link_pytest

LIMITS = Limits(wall_s=30, cpu_s=30, memory_bytes=1 << 30, file_bytes=16 << 20, processes=32)

_PLACE = re.compile(r'File "(?:\.\./)?(src|check)/([^"]{1,300})", line (\d+)')
_PROGRAM = f"Python {platform.python_version()}"

# What test code has that needs a module without importing it.
_NEEDS = {
    "asyncio": "async ",
    "pytest": r"pytest|TestCase|\bdef test|\bclass \w*Test|\bTest\w*\s*=",
}
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

_RUN_TESTS = Path(__file__).with_name("run_tests.py")
_MOST_REPORTS = 100_000
_LONGEST_REPORT = 8 << 10


class Python(toolchain.Compiler):
    """A toolchain that compiles Python to bytecode without running it."""

    def command(self, check: Compile) -> toolchain.Command:  # noqa: ARG002 - takes no options
        """See `Compiler.command`."""
        return toolchain.Command(
            label=_PROGRAM,
            program=PYTHON,
            options=("-I", "-S", "-W", "ignore", "-c", _COMPILE),
            suffix=".py",
            smallest="pass\n",
            homes=PYTHON_FOLDERS,
            reads_files=False,
        )


class PythonRunner:
    """A runner that imports the answer, then runs the test code and its ``test_`` functions.

    Test code can use the answer's names directly, or import them from ``answer`` or from the files
    that the answer names. Only the standard library, pytest and its dependencies are installed.
    """

    def missing(self) -> str | None:
        """See `Runner.missing`."""
        return None

    def run(self, sources: toolchain.Sources, code: str, sandbox: Sandbox) -> toolchain.Built:
        """See `Runner.run`."""
        tests = find_tests(code)
        if tests.problem:
            raise CannotCompile(f"run python: the test code is wrong: {tests.problem}")
        needed = {name for name, sign in _NEEDS.items() if re.search(sign, code)}
        with workspace() as home:
            try:
                _copy_workspace(home, sources)
                files = toolchain.write_sources(home, sources, ".py")
            except OSError as error:
                message = f"the answer's file names clash: {error.strerror}"
                return toolchain.Built(passed=False, compiler=_PROGRAM, message=message)
            home.write("check/test.py", "")
            home.write("check/pytest.ini", "[pytest]\n")
            program = [str(PYTHON), "-I", "-S", "-B", "-u", "-c", _RUN_TESTS.read_text("utf-8")]
            with Supervisor(code) as supervisor:
                program += [str(supervisor.descriptor), ",".join(needed | tests.modules), *files]
                outcome = sandbox.run(
                    program,
                    home,
                    readable=(*PYTHON_FOLDERS, *link_pytest(home.root)),
                    limits=LIMITS,
                    files=(supervisor.descriptor,),
                )
        lines = [line for line in outcome.output.split("\n") if line.strip()]
        diagnostics = [_PLACE.sub(_describe_place, line) for line in lines]
        failure = _why_failed(outcome, diagnostics, supervisor.reports, expects_test=tests.found)
        return toolchain.Built(
            passed=failure is None,
            compiler=_PROGRAM,
            message=failure or "passes",
            diagnostics=tuple(diagnostics),
        )


class Supervisor(threading.Thread):
    """Sends the test code when the answer is imported, and collects what is reported of the tests.

    Attributes:
        descriptor: The file descriptor for the program in the sandbox.
        reports: For each event, the names of the tests of which it was reported.
    """

    def __init__(self, code: str) -> None:
        super().__init__(daemon=True)
        self._ours, self._theirs = socket.socketpair()
        self.descriptor = self._theirs.fileno()
        self.reports = defaultdict[str, set[str]](set)
        self._code = code.encode("utf-8", "surrogatepass")

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        with self._theirs:
            # A process that the program left behind may keep the socket open.
            self._theirs.shutdown(socket.SHUT_RDWR)
        self.join()

    def run(self) -> None:
        """Supervise until the program ends."""
        nonce = secrets.token_hex(16)
        with self._ours as ours, ours.makefile("rb") as reader, suppress(OSError):
            ours.sendall(f"{nonce} {hashlib.sha256(self._code).hexdigest()}".encode())
            lines = iter(lambda: reader.readline(_LONGEST_REPORT), b"")
            for line in islice(lines, _MOST_REPORTS):
                known, event, name = (*line.decode("utf-8", "replace").split(" ", 2), "", "")[:3]
                if known != nonce:
                    continue
                if event == "imported":
                    ours.sendall(self._code)
                    ours.shutdown(socket.SHUT_WR)
                self.reports[event].add(name.rstrip("\n").partition("::")[2])


def _copy_workspace(home: Workspace, sources: toolchain.Sources) -> None:
    """Copy the files that an agent left to where the tests run, and its modules to ``src``.

    Modules of the standard library come first on the path: a ``json.py`` replaces nothing.
    """
    units = {unit.name for unit in sources.units}
    for file in sources.workspace:
        home.write_bytes(f"cwd/{file.name}", file.content)
        if file.name.endswith(".py") and file.name not in units:
            home.write_bytes(f"src/{file.name}", file.content)


def _why_failed(
    outcome: Outcome, lines: Sequence[str], reports: Mapping[str, set[str]], *, expects_test: bool
) -> str | None:
    """Return in one line why a test run failed, or which test did not run; None if it passed.

    Raises:
        CannotCompile: No test ran, or the session ended first.
    """
    if limit := toolchain.limit_reached(outcome, LIMITS):
        return limit
    if toolchain.crashed(outcome):
        return "it crashed, or exceeded its memory or time limit"
    if outcome.returncode:
        return lines[-1][:300] if lines else "it fails without a message"
    if not reports["done"]:
        return "it exits before the end of the test code"
    if missed := reports["found"] - reports["ran"] - reports["skipped"]:
        return f"{min(missed)} did not run"
    if expects_test and not reports["ran"]:
        raise CannotCompile("run python: the test code is wrong: nothing ran")
    return None


def _describe_place(match: re.Match[str]) -> str:
    """Return how a place in a traceback is called."""
    folder, name, line = match.groups()
    return f"test line {line}" if folder == "check" else toolchain.place_in_answer(name, line)
