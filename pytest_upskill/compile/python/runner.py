"""Runner for Python, which runs the answer and its tests in separate processes.

This process writes the answer, and a plan with the test code, to a workspace. In the sandbox,
`run_supervisor` reads and deletes the plan, and starts `run_tests`, which imports the answer. Then
it sends the test code there, with a secret that each report of a test has to begin with. It prints
the verdict after a mark from the plan. The answer is imported before the secret and the test code
arrive, and never sees the mark.
"""

from __future__ import annotations

import json
import platform
import re
import secrets
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path

from pytest_upskill.checks.python_tests import PythonTests, find_tests
from pytest_upskill.checks.relative_path import relative_path
from pytest_upskill.compile.diagnostics import crashed, limit_reached, place_in_answer
from pytest_upskill.compile.toolchain import Built, CannotCompile, Sources, write_sources
from pytest_upskill.sandbox.interpreter import PYTHON, PYTHON_FOLDERS
from pytest_upskill.sandbox.limits import Limits
from pytest_upskill.sandbox.run import Outcome, Sandbox
from pytest_upskill.sandbox.workspace import Workspace, workspace

LIMITS = Limits(wall_s=30, cpu_s=30, memory_bytes=1 << 30, file_bytes=16 << 20, processes=32)

_MAX_LINE = 300
_PLACE = re.compile(r'File "(?:\.\./)?(src|check)/([^"]{1,300})", line (\d+)')
_PROGRAM = f"Python {platform.python_version()}"

_MAY_HOLD_TESTS = re.compile(r"pytest|TestCase|\bdef test|\bclass \w*Test|\bTest\w*\s*=")
_SUPERVISOR = Path(__file__).with_name("run_supervisor.py")
_TESTS = Path(__file__).with_name("run_tests.py")
# All packages that pytest imports, some only on certain versions of Python.
_PYTEST = ("_pytest", "pytest", "pluggy", "iniconfig", "packaging", "py", "pygments")
_PYTEST_BEFORE_3_11 = ("exceptiongroup", "tomli", "typing_extensions")


class PythonRunner:
    """A runner that imports the answer, then runs the test code and its ``test_`` functions.

    Test code can use the answer's names directly, or import them from ``answer`` or from the files
    that the answer names. Only the standard library, pytest and its dependencies are installed.
    """

    def missing(self) -> str | None:
        """See `Runner.missing`."""
        return None

    def run(self, sources: Sources, code: str, sandbox: Sandbox) -> Built:
        """See `Runner.run`."""
        tests = _find_tests(code)
        with workspace() as home:
            try:
                _copy_workspace(home, sources)
                files = write_sources(home, sources, ".py")
            except OSError as error:
                message = f"the answer's file names clash: {error.strerror}"
                return Built(passed=False, compiler=_PROGRAM, message=message)
            mark = f"= {secrets.token_hex(16)} "
            plan = {"code": code, "names": tests.names, "is_script": tests.is_script, "mark": mark}
            arguments = (
                _SUPERVISOR.read_text("utf-8"),
                home.write("tmp/plan.json", json.dumps(plan)),
                _TESTS.read_text("utf-8"),
                _preloaded(code, tests),
                *files,
            )
            home.write("check/test.py", "")
            home.write("check/pytest.ini", "[pytest]\n")
            outcome = sandbox.run(
                [str(PYTHON), "-I", "-S", "-B", "-u", "-c", *arguments],
                home,
                readable=(*PYTHON_FOLDERS, *_link_pytest(home)),
                limits=LIMITS,
            )
        return _read(outcome, mark)


def _copy_workspace(home: Workspace, sources: Sources) -> None:
    """Copy the files that an agent left to where the tests run, and its modules to ``src``.

    Modules of the standard library come first on the path: a ``json.py`` replaces nothing.
    """
    units = {unit.name for unit in sources.units}
    for file in sources.workspace:
        if relative_path(file.name) != file.name:
            continue
        home.write_bytes(f"cwd/{file.name}", file.content)
        if file.name.endswith(".py") and file.name not in units:
            home.write_bytes(f"src/{file.name}", file.content)


def _find_tests(code: str) -> PythonTests:
    """Find the tests in the test code.

    Raises:
        CannotCompile: The test code is invalid.
    """
    try:
        tests = find_tests(code)
    except (SyntaxError, ValueError) as error:
        raise CannotCompile(f"run python: the test code is not Python: {error}") from None
    if tests.problem:
        raise CannotCompile(f"run python: the test code is wrong: {tests.problem}")
    return tests


def _preloaded(code: str, tests: PythonTests) -> str:
    """Return the modules to import before the answer can replace them, separated by commas."""
    modules = {"math", "operator"}
    if tests.names or _MAY_HOLD_TESTS.search(code):
        modules.add("pytest")
    for name in ("unittest", "asyncio"):
        # A test that is a coroutine function is run by asyncio.
        if name in code or (name == "asyncio" and "async " in code):
            modules.add(name)
    return ",".join(sorted(modules))


def _link_pytest(home: Workspace) -> Iterator[Path]:
    """Link pytest and its dependencies into ``lib``, without the rest of the environment."""
    (home.root / "lib").mkdir()
    for name in (*_PYTEST, *_PYTEST_BEFORE_3_11):
        if (spec := find_spec(name)) and spec.origin:
            file = Path(spec.origin)
            found = file.parent if file.name == "__init__.py" else file
            (home.root / "lib" / found.name).symlink_to(found)
            yield found


def _read(outcome: Outcome, mark: str) -> Built:
    """Make the result, separating the supervisor's verdict from the output of the answer."""
    lines = outcome.output.split("\n")
    verdicts = [line.removeprefix(mark) for line in lines if line.startswith(mark)]
    printed = [line for line in lines if line.strip() and not line.startswith(mark)]
    if outcome.succeeded and verdicts == ["nothing ran"]:
        raise CannotCompile("run python: the test code is wrong: nothing ran")
    diagnostics = [_PLACE.sub(_describe_place, line) for line in printed]
    passed = outcome.succeeded and verdicts == ["passed"]
    return Built(
        passed=passed,
        compiler=_PROGRAM,
        message="passes" if passed else _failure_reason(outcome, diagnostics),
        diagnostics=tuple(diagnostics),
    )


def _failure_reason(outcome: Outcome, lines: Sequence[str]) -> str:
    """Return in one line why a test run failed.

    Raises:
        CannotCompile: The session ended first.
    """
    if limit := limit_reached(outcome, LIMITS):
        return limit
    if crashed(outcome):
        return "it crashed, or exceeded its memory or time limit"
    if outcome.returncode == 0:
        return "it exits before the end of the test code"
    return lines[-1][:_MAX_LINE] if lines else "it fails without a message"


def _describe_place(match: re.Match[str]) -> str:
    """Return how a place in a traceback is called."""
    folder, name, line = match.groups()
    return f"test line {line}" if folder == "check" else place_in_answer(name, line)
