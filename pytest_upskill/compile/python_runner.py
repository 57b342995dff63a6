"""Python test code on the Python of an answer, in a process of its own."""

from __future__ import annotations

import platform
import secrets
import sys
from dataclasses import replace
from pathlib import Path

from pytest_upskill.compile.running import LIMITS, Ran
from pytest_upskill.compile.toolchain import Built, Sources, write_sources
from pytest_upskill.sandbox import Sandbox
from pytest_upskill.workspace import workspace

_PROGRAM = f"Python {platform.python_version()}"

# Runs in the sandbox. An exit code proves nothing, as the answer can exit too: only who gets past
# the end of the test code prints the token.
_RUN = """
import importlib.util, linecache, os, sys, traceback
token, test, *files = sys.argv[1:]
del sys.argv[1:], sys.orig_argv[1:]
sys.path.insert(0, "../src")
names = {"__name__": "__main__", "__file__": test}

def load(file):
    name = file.removeprefix("../src/").removesuffix(".py").replace("/", ".")
    module = sys.modules.get(name)
    if os.path.abspath(file) != getattr(module, "__file__", None):
        spec = importlib.util.spec_from_file_location(name, os.path.abspath(file))
        module = sys.modules[name] = importlib.util.module_from_spec(spec)
        sys.modules.setdefault("answer", module)
        spec.loader.exec_module(module)
    names.update({k: v for k, v in vars(module).items() if not k.startswith("__")})

def call_tests():
    with open(test, encoding="utf-8") as source:
        code = compile(source.read(), test, "exec")
    before = dict(names)
    exec(code, names)
    for name, value in list(names.items()):
        if name.startswith("test_") and value is not before.get(name):
            value()

def report(error):
    told = traceback.TracebackException.from_exception(error)
    told.stack = traceback.StackSummary.from_list(
        [frame for frame in told.stack if not frame.filename.startswith("<")]
    )
    *lines, last = told.format()
    if last.strip() == "AssertionError":
        frame = told.stack[-1]
        last = f"AssertionError: {linecache.getline(frame.filename, frame.lineno).strip()}"
    sys.exit("".join(lines) + last.rstrip())

try:
    for file in files:
        load(file)
    call_tests()
except SystemExit as error:
    sys.exit(f"exits with {error.code!r} before the end of the test code")
except BaseException as error:
    report(error)
sys.stdout.flush()
os.write(1, token.encode())
os._exit(0)
"""


class PythonRunner:
    """Defines what the answer defines, then runs the test code and each ``test_`` function of it.

    The answer's names can be used as they are, or imported from ``answer`` and from the files that
    the answer names. There is the standard library only.
    """

    def missing(self) -> str | None:
        """See `Runner.missing`."""
        return None

    def run(self, sources: Sources, code: str, sandbox: Sandbox) -> Built:
        """See `Runner.run`."""
        token = secrets.token_hex(16)
        with workspace() as home:
            try:
                files = write_sources(home, sources, ".py")
            except OSError as error:
                message = f"the answer's file names clash: {error.strerror}"
                return Built(passed=False, compiler=_PROGRAM, message=message)
            test = home.write("check/test.py", code)
            # Not the virtual environment's link, which may lie where nothing can be read.
            python = str(Path(sys.executable).resolve())
            outcome = sandbox.run(
                [python, "-I", "-S", "-B", "-u", "-c", _RUN, token, test, *files],
                home,
                readable=(Path(sys.base_prefix).resolve(), Path(sys.base_exec_prefix).resolve()),
                limits=LIMITS,
            )
        reached_end = token in outcome.output
        outcome = replace(outcome, output=outcome.output.replace(token, ""))
        return Ran(outcome=outcome, reached_end=reached_end).described(_PROGRAM)
