"""Import an answer, then run test code on it, with pytest if the tests need it.

Run by `run_supervisor` as ``python -I -S -c SOURCE TESTS REPORT PRELOADED FILE…``. TESTS and REPORT
are file descriptors; PRELOADED names the modules to import before the answer can replace them. Each
report is a line: the secret that came with the test code, the event, and the name of the test.

The answer runs in this process, so an answer that targets this file can forge reports. It cannot
bypass the supervisor, print a verdict, or read the test code while it is imported. What decides a
verdict is bound here before the answer is imported, which may replace whatever it can name.
"""

from __future__ import annotations

import importlib.util
import inspect
import linecache
import os
import sys
import traceback
from collections.abc import Iterator
from os import _exit, read, write
from types import ModuleType
from typing import Any

TEST = "../check/test.py"
_SOURCES = os.path.abspath("../src") + "/"  # noqa: PTH100 - pathlib is slow to import
_FRAMEWORKS = frozenset({"unittest", "pytest", "_pytest", "pluggy", "asyncio"})
_GUARDED = _FRAMEWORKS | {"builtins", "operator", "math"}
_TOOLS = 6
"""Tools that `sys.monitoring` knows."""
_SECRET = 32
"""Characters of the secret."""


class Reporter:
    """A writer of reports to the supervisor."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self.secret = ""

    def report(self, event: str, name: str = "") -> None:
        """Write one report."""
        write(self._descriptor, f"{self.secret} {event} {name}\n".encode("utf-8", "replace"))


def main() -> None:
    """Run everything; exit with 0 if no test failed."""
    tests_in, report_out, preloaded, *files = sys.argv[1:]
    del sys.argv[1:], sys.orig_argv[1:]
    sys.path += [os.path.abspath("../lib"), "../src"]  # noqa: PTH100 - as above
    for name in filter(None, preloaded.split(",")):
        importlib.import_module(name)
    reporter = Reporter(int(report_out))
    sys.modules["__main__"] = ModuleType("__main__")  # not this one, which the answer could import
    guarded = dict(_definitions(_GUARDED))
    try:
        names = _import_answer(files)
        _stop_tracing()
        _refuse_replaced(guarded)
        reporter.report("imported")
        received = b""
        while chunk := read(int(tests_in), 1 << 16):
            received += chunk
        text = received.decode("utf-8", "surrogatepass")
        reporter.secret, code = text[:_SECRET], text[_SECRET:]
        linecache.cache[TEST] = (len(code), None, code.splitlines(keepends=True), TEST)
        _run_tests(code, names, reporter, uses_pytest="pytest" in preloaded)
        _refuse_replaced({key: value for key, value in guarded.items() if key[0] in _FRAMEWORKS})
        if sys.gettrace() or sys.getprofile():
            _fail("the answer traces the tests")
    except BaseException as error:  # noqa: BLE001 - whatever an answer raises
        _fail_with_traceback(error)
    sys.stdout.flush()
    reporter.report("done")
    _exit(0)


def _stop_tracing() -> None:
    """Remove the tracers that the answer has set, also those of Python 3.12 and later."""
    sys.settrace(None)
    sys.setprofile(None)
    monitoring: Any = getattr(sys, "monitoring", None)
    for tool in range(_TOOLS if monitoring else 0):
        if monitoring.get_tool(tool) is not None:
            monitoring.set_events(tool, 0)
            for event in vars(monitoring.events).values():
                if isinstance(event, int) and event.bit_count() == 1:
                    monitoring.register_callback(tool, event, None)


def _import_answer(files: list[str]) -> dict[str, Any]:
    """Import the files of the answer, and return the names that they define."""
    names: dict[str, Any] = {}
    for file in files:
        path = _SOURCES + file.removeprefix("../src/")
        name = file.removeprefix("../src/").removesuffix(".py").replace("/", ".")
        # A file called json.py must not replace the module json.
        own = name.partition(".")[0] not in sys.stdlib_module_names | _GUARDED
        module = sys.modules.get(name) if own else None
        if path != getattr(module, "__file__", None):
            spec = importlib.util.spec_from_file_location(name, path)
            assert spec is not None
            assert spec.loader is not None
            module = importlib.util.module_from_spec(spec)
            if own:
                sys.modules[name] = module
            sys.modules.setdefault("answer", module)
            spec.loader.exec_module(module)
        names |= {key: value for key, value in vars(module).items() if not key.startswith("__")}
    return names


def _run_tests(code: str, names: dict[str, Any], reporter: Reporter, *, uses_pytest: bool) -> None:
    names |= {"__name__": "test" if uses_pytest else "__main__", "__file__": TEST}
    before = dict(names)
    try:
        exec(compile(code, TEST, "exec"), names)  # noqa: S102 - running it is the purpose
    except BaseException as error:
        if uses_pytest and _is_skip(error) and _is_from_tests(error):
            reporter.report("skipped_all")
            return
        raise
    if uses_pytest:
        module = ModuleType("test")
        # The answer's own test functions are not the case's.
        new = {key: value for key, value in names.items() if value is not before.get(key)}
        vars(module).update(new)
        _run_pytest(module, reporter)


def _run_pytest(module: ModuleType, reporter: Reporter) -> None:
    import pytest

    hookimpl = pytest.hookimpl

    class Plugin:
        """A plugin that collects from a module object, runs coroutines, and reports results."""

        def pytest_pycollect_makemodule(self, module_path: Any, parent: Any) -> pytest.Module:
            collector: pytest.Module = pytest.Module.from_parent(parent, path=module_path)
            collector.obj = module
            return collector

        @hookimpl(tryfirst=True)
        def pytest_pyfunc_call(self, pyfuncitem: Any) -> bool | None:
            return _run_coroutine(pyfuncitem)

        @hookimpl(wrapper=True)
        def pytest_runtest_makereport(self, item: Any, call: Any) -> Iterator[Any]:
            raised = call.excinfo
            report = yield
            # pytest replaces a SkipTest, and sets the excinfo of a TestCase only now.
            raised = raised or call.excinfo
            _report_phase(item, raised and raised.value, report, reporter)
            return report

        def pytest_runtest_logreport(self, report: Any) -> None:
            if report.failed:  # a subtest
                _fail(report.longreprtext)

        def pytest_collectreport(self, report: Any) -> None:
            if report.failed:
                _fail(report.longreprtext)

    # The answer may have set variables that make it a plugin, or put one on the path.
    for name in [each for each in os.environ if each.startswith("PYTEST_")]:
        del os.environ[name]
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    options = ["-c", "../check/pytest.ini", "--noconftest", "-x", "-s", "-p", "no:terminal"]
    options += ["-p", "no:cacheprovider", "-p", "no:junitxml", "-p", "no:faulthandler"]
    status = pytest.main([*options, TEST], plugins=[Plugin()])
    if status not in {pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED}:
        _fail(f"pytest ends with exit code {int(status)}")


def _run_coroutine(item: Any) -> bool | None:
    """Run a test that is a coroutine function, which pytest does not support; else return None."""
    if not inspect.iscoroutinefunction(item.obj):
        return None
    import asyncio

    wanted = inspect.signature(item.obj).parameters
    asyncio.run(item.obj(**{name: item.funcargs[name] for name in wanted}))
    return True


def _report_phase(item: Any, error: BaseException | None, report: Any, reporter: Reporter) -> None:
    """Report the result of the setup, call or teardown of a test; exit if it failed."""
    name = getattr(item, "originalname", None) or item.name
    if item.cls:
        name = f"{item.cls.__name__}.{name}"
    if error and report.failed:
        _fail_with_traceback(error)
    if error and _is_skip(error) and not _is_from_tests(error) and report.when == "call":
        _fail(f"the answer skips {name}")
    if report.skipped and not hasattr(report, "wasxfail"):
        reporter.report("skipped", name)
    elif report.when == "call":
        reporter.report("ran", name)


def _definitions(packages: frozenset[str]) -> Iterator[tuple[tuple[str, ...], object]]:
    """Yield the functions and classes of packages, and the members of these classes."""
    for name, module in list(sys.modules.items()):
        package = name.partition(".")[0]
        if package not in packages:
            continue
        for key, value in list(vars(module).items()):
            if callable(value):
                yield (package, name, key), value
            if isinstance(value, type) and value.__module__.partition(".")[0] in packages:
                for attribute, inner in list(vars(value).items()):
                    if callable(inner) or hasattr(inner, "__get__"):
                        yield (package, name, f"{key}.{attribute}"), inner


def _refuse_replaced(guarded: dict[tuple[str, ...], object]) -> None:
    """Fail an answer that replaced a definition that tests rely on."""
    now = dict(_definitions(_GUARDED))
    for key, value in guarded.items():
        if now.get(key) is not value:
            _fail(f"the answer replaces {key[1]}.{key[2]}")


def _is_skip(error: BaseException) -> bool:
    return type(error).__name__ in {"Skipped", "SkipTest", "XFailed"}


def _is_from_tests(error: BaseException | None) -> bool:
    """Return whether only test code, pytest and unittest raised an exception, not the answer."""
    libraries = tuple(
        os.path.dirname(sys.modules[name].__file__ or "")  # noqa: PTH120 - as above
        for name in _loaded_libraries()
    )
    while error:
        files = [frame.f_code.co_filename for frame, _ in traceback.walk_tb(error.__traceback__)]
        inside = files[files.index(TEST) :] if TEST in files else files
        if not all(file == TEST or file.startswith(libraries) for file in inside):
            return False
        # pytest raises another exception in place of one that unittest caught.
        error = error.__context__
    return True


def _loaded_libraries() -> list[str]:
    return [name for name in ("_pytest", "pluggy", "unittest") if name in sys.modules]


def _fail_with_traceback(error: BaseException) -> None:
    """Print a traceback that starts in the test code or the answer, and exit with 1."""
    if isinstance(error, SystemExit):
        _fail(f"exits with {error.code!r} before the end of the test code")
    traceback_exception = traceback.TracebackException.from_exception(error)
    frames = [frame for frame in traceback_exception.stack if not frame.filename.startswith("<")]
    while frames and not _is_own(frames[0].filename):
        del frames[0]
    traceback_exception.stack = traceback.StackSummary.from_list(frames)
    *lines, last = traceback_exception.format()
    if last.strip() == "AssertionError" and frames:
        line = linecache.getline(frames[-1].filename, frames[-1].lineno or 0)
        last = f"AssertionError: {line.strip()}"
    _fail("".join(lines) + last.rstrip())


def _is_own(file: str) -> bool:
    return file == TEST or file.startswith(_SOURCES)


def _fail(message: str) -> None:
    try:
        sys.stdout.flush()
    finally:  # the answer may have replaced it
        write(2, message.encode("utf-8", "replace") + b"\n")
        _exit(1)


if __name__ == "__main__":
    main()
