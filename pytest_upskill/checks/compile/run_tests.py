"""Import an answer, then run test code on it, with pytest if the tests need it.

Run in the sandbox by `python.py` as ``python -I -S -c SOURCE SOCKET PRELOADED FILE…``. SOCKET is a
file descriptor; PRELOADED names the modules to import before the answer can replace them.

The answer runs in this process, so an answer that targets this file can forge reports. What other
answers do on their own must not change a verdict: whatever decides one is bound here before the
answer is imported, and pytest has read its options, variables, paths and plugins by then.
"""

import importlib.util
import inspect
import linecache
import os
import sys
import traceback
from collections.abc import Iterator
from hashlib import sha256
from os import _exit, getpid, read, write
from types import ModuleType
from typing import Any, NoReturn

_ROOT = os.path.dirname(os.getcwd())  # noqa: PTH109, PTH120 - pathlib is slow to import
_SOURCES = f"{_ROOT}/src/"
_TEST = f"{_ROOT}/check/test.py"
_FRAMEWORKS = frozenset({"unittest", "pytest", "_pytest", "pluggy", "asyncio"})
_GUARDED = _FRAMEWORKS | {"builtins", "inspect"}
_SKIPPING = ("skip", "xfail", "expectedfailure")
"""Tests that skip themselves or expect to fail contain one of these."""


class Supervisor:
    """The connection to the process outside that counts the tests and decides."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._process = getpid()
        self._nonce, self._digest = read(descriptor, 1 << 10).decode().split()

    def report(self, event: str, name: str = "") -> None:
        """Write one report."""
        if getpid() == self._process:
            report = f"{self._nonce} {event} {name[:1000]}\n"
            write(self._descriptor, report.encode("utf-8", "replace"))

    def receive_test_code(self) -> str:
        """Return the test code, which the supervisor sends once the answer is imported."""
        self.report("imported")
        received = b""
        while chunk := read(self._descriptor, 1 << 16):
            received += chunk
        if sha256(received).hexdigest() != self._digest:
            _fail("the answer reads the test code or replaces it")
        return received.decode("utf-8", "surrogatepass")


class Tests:
    """The test code of a case, and the answer that it tests."""

    def __init__(self, files: list[str], supervisor: Supervisor, preloaded: set[str]) -> None:
        self._files = files
        self._supervisor = supervisor
        self._uses_pytest = "pytest" in preloaded
        self._guarded = _GUARDED | {name.partition(".")[0] for name in preloaded}
        self._definitions: dict[str, object] = {}
        self._may_skip = False

    def load(self) -> ModuleType:
        """Import the answer and run the module of the tests; exit if that fails."""
        module = ModuleType("test")
        self._definitions = dict(_definitions(self._guarded))
        try:
            names = _import_answer(self._files)
            self._refuse_replaced(self._guarded)
            text = self._supervisor.receive_test_code()
            linecache.cache[_TEST] = (len(text), None, text.splitlines(keepends=True), _TEST)
            names |= {"__name__": "test" if self._uses_pytest else "__main__", "__file__": _TEST}
            before = dict(names)
            self._may_skip = any(word in text.lower() for word in _SKIPPING)
            exec(compile(text, _TEST, "exec"), names)  # noqa: S102 - running it is the purpose
        except BaseException as error:  # noqa: BLE001 - whatever an answer raises
            if not self._uses_pytest or not _is_skip(error) or _is_of_answer(error):
                _fail_with_traceback(error)
            return module  # without tests
        # The answer's own test functions are not the case's.
        new = {key: value for key, value in names.items() if value is not before.get(key)}
        vars(module).update(new)
        return module

    def finish(self) -> NoReturn:
        """Report that all tests were run, and exit."""
        self._refuse_replaced(_FRAMEWORKS)
        self._supervisor.report("done")
        _exit(0)

    def _refuse_replaced(self, packages: frozenset[str]) -> None:
        """Fail an answer that replaced a definition that tests rely on."""
        now = dict(_definitions(self._guarded))
        for name, value in self._definitions.items():
            # Not by ==, which the answer can define.
            if name.partition(".")[0] in packages and now.get(name) is not value:
                _fail(f"the answer replaces {name}")

    def report_phase(self, item: Any, error: BaseException | None, report: Any) -> None:
        """Report the result of the setup, call or teardown of a test; exit if it failed.

        A test may skip itself, or expect to fail; the answer may not do it for the test.
        """
        if error and report.failed:
            _fail_with_traceback(error)
        if report.skipped and (not self._may_skip or _is_of_answer(error)):
            _fail(f"the answer skips {item.nodeid.partition('::')[2]}")
        if report.skipped and (report.when == "setup" or not hasattr(report, "wasxfail")):
            self._supervisor.report("skipped", item.nodeid)
        elif report.when == "call":
            self._supervisor.report("ran", item.nodeid)


def main() -> None:
    """Run everything; exit with 0 if no test failed."""
    descriptor, preloaded, *files = sys.argv[1:]
    del sys.argv[1:], sys.orig_argv[1:]
    sys.path += [f"{_ROOT}/lib", _SOURCES.rstrip("/")]
    modules = set(filter(None, preloaded.split(",")))
    for name in modules:
        importlib.import_module(name)
    sys.modules["__main__"] = ModuleType("__main__")  # not this one, which the answer could import
    supervisor = Supervisor(int(descriptor))
    tests = Tests(files, supervisor, modules)
    if "pytest" in modules:
        _run_pytest(tests, supervisor)
    tests.load()
    tests.finish()


def _import_answer(files: list[str]) -> dict[str, Any]:
    """Import the files of the answer, and return the names that they define."""
    names: dict[str, Any] = {}
    for file in files:
        path = _SOURCES + file.removeprefix("../src/")
        name = file.removeprefix("../src/").removesuffix(".py").replace("/", ".")
        module = sys.modules.get(name)
        if path != getattr(module, "__file__", None):
            spec: Any = importlib.util.spec_from_file_location(name, path)
            module = importlib.util.module_from_spec(spec)
            # A file called json.py must not replace the module json.
            if name.partition(".")[0] not in sys.stdlib_module_names | _GUARDED:
                sys.modules[name] = module
            sys.modules.setdefault("answer", module)
            spec.loader.exec_module(module)
        names |= {key: value for key, value in vars(module).items() if not key.startswith("__")}
    return names


def _run_pytest(tests: Tests, supervisor: Supervisor) -> NoReturn:
    """Run pytest, which imports the answer when it collects, with everything else in place."""
    import pytest

    class Plugin:
        """A plugin that collects from a module object, runs coroutines, and reports results."""

        def pytest_pycollect_makemodule(self, module_path: Any, parent: Any) -> pytest.Module:
            collector: pytest.Module = pytest.Module.from_parent(parent, path=module_path)
            collector.obj = tests.load()
            return collector

        def pytest_collection_finish(self, session: pytest.Session) -> None:
            for item in session.items:
                supervisor.report("found", item.nodeid)

        @pytest.hookimpl(tryfirst=True)
        def pytest_pyfunc_call(self, pyfuncitem: Any) -> bool | None:
            return _run_coroutine(pyfuncitem)

        @pytest.hookimpl(wrapper=True)
        def pytest_runtest_makereport(self, item: Any, call: Any) -> Iterator[Any]:
            raised = call.excinfo  # pytest replaces a SkipTest
            report = yield
            raised = raised or call.excinfo  # pytest sets that of a TestCase only now
            tests.report_phase(item, raised and raised.value, report)
            return report

        def pytest_runtest_logreport(self, report: Any) -> None:
            if report.failed:  # a subtest
                _fail(report.longreprtext)

        pytest_collectreport = pytest_runtest_logreport

        def pytest_sessionfinish(self, exitstatus: int) -> None:
            if exitstatus not in {pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED}:
                _fail(f"pytest ends with exit code {int(exitstatus)}")
            tests.finish()

    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    options = ["-c", f"{_ROOT}/check/pytest.ini", "--noconftest", "-s", "-p", "no:terminal"]
    options += ["-p", "no:cacheprovider", "-p", "no:junitxml", "-p", "no:faulthandler"]
    pytest.main([*options, _TEST], plugins=[Plugin()])
    _fail("pytest did not end its session")


def _run_coroutine(item: Any) -> bool | None:
    """Run a test that is a coroutine function, which pytest does not support; else return None."""
    if not inspect.iscoroutinefunction(item.obj):
        return None
    import asyncio

    wanted = inspect.signature(item.obj).parameters
    asyncio.run(item.obj(**{name: item.funcargs[name] for name in wanted}))
    return True


def _definitions(packages: frozenset[str]) -> Iterator[tuple[str, object]]:
    """Yield functions and classes of packages, and the classes' members, by name."""
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] not in packages:
            continue
        for key, value in list(vars(module).items()):
            if callable(value):
                yield f"{name}.{key}", value
            if isinstance(value, type) and value.__module__.partition(".")[0] in packages:
                for attribute, inner in list(vars(value).items()):
                    if callable(inner) or hasattr(inner, "__get__"):
                        yield f"{name}.{key}.{attribute}", inner


def _is_skip(error: BaseException) -> bool:
    import unittest

    import pytest

    return isinstance(error, (pytest.skip.Exception, pytest.xfail.Exception, unittest.SkipTest))


def _is_of_answer(error: BaseException | None) -> bool:
    """Return whether an exception was raised in the answer."""
    while error:
        frames = [frame.f_code.co_filename for frame, _ in traceback.walk_tb(error.__traceback__)]
        if any(file.startswith(_SOURCES) for file in frames):
            return True
        # pytest raises another exception in place of one that unittest caught.
        error = error.__context__
    return False


def _fail_with_traceback(error: BaseException) -> NoReturn:
    """Print a traceback that starts in the test code or the answer, and exit with 1."""
    if isinstance(error, SystemExit):
        _fail(f"exits with {error.code!r} before the end of the test code")
    traceback_exception = traceback.TracebackException.from_exception(error)
    frames = [frame for frame in traceback_exception.stack if not frame.filename.startswith("<")]
    while frames and not frames[0].filename.startswith((_TEST, _SOURCES)):
        del frames[0]
    traceback_exception.stack = traceback.StackSummary.from_list(frames)
    *lines, last = traceback_exception.format()
    if last.strip() == "AssertionError" and frames:
        line = linecache.getline(frames[-1].filename, frames[-1].lineno or 0)
        last = f"AssertionError: {line.strip()}"
    _fail("".join(lines) + last.rstrip())


def _fail(message: str) -> NoReturn:
    write(2, message.encode("utf-8", "replace") + b"\n")
    _exit(1)


if __name__ == "__main__":
    main()
