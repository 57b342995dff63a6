"""Static analysis of Python test code, to find the tests that will run."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass

_FUNCTION = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True, kw_only=True)
class PythonTests:
    """The tests in test code, by pytest's default naming rules."""

    names: tuple[str, ...]
    """Names of tests that certainly exist: ``test_sum``, ``TestSum.test_zero``."""
    is_script: bool
    """Whether code outside functions and classes asserts, raises or calls something."""
    never_run: tuple[str, ...]
    """For each test that pytest would not run, the reason in one line."""
    modules: frozenset[str]
    """What it imports of the standard library."""

    @property
    def problem(self) -> str | None:
        """Why the test code cannot decide a check, in one line; None if no reason is found."""
        if self.never_run:
            return self.never_run[0]
        if not self.names and not self.is_script:
            return "nothing runs: it has no test function and no statement that could fail"
        return None


def find_tests(code: str) -> PythonTests:
    """Find the tests in test code.

    Raises:
        SyntaxError: The code is not valid Python.
        ValueError: The code contains a null byte.
    """
    parsed = ast.parse(code)
    body = parsed.body
    deleted = {
        target.id
        for node in body
        if isinstance(node, ast.Delete)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    found = [node for node in body if getattr(node, "name", None) not in deleted]
    tests = [test for node in found for test in _tests(node)]
    never_run = [
        *(
            f"{name} is a generator, which pytest does not run"
            for name, node in tests
            if _yields(node)
        ),
        *(
            f"{node.name} has an __init__, so pytest does not collect it"
            for node in found
            if isinstance(node, ast.ClassDef) and _is_plain_tests(node) and _has_init(node)
        ),
    ]
    return PythonTests(
        names=tuple(dict.fromkeys(name for name, _ in tests)),
        is_script=any(map(_can_fail, body)),
        never_run=tuple(never_run),
        modules=frozenset(_standard_modules(parsed)),
    )


def _standard_modules(parsed: ast.Module) -> Iterator[str]:
    for node in ast.walk(parsed):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        for name in names:
            # The program that runs tests is `__main__` until it has imported these.
            if name.partition(".")[0] in sys.stdlib_module_names - {"__main__", "sys"}:
                yield name


def _tests(node: ast.stmt) -> Iterator[tuple[str, ast.stmt]]:
    if isinstance(node, _FUNCTION):
        if _is_test(node):
            yield node.name, node
    elif isinstance(node, ast.ClassDef) and _is_collected(node):
        for each in node.body:
            if isinstance(each, _FUNCTION) and _is_test(each):
                yield f"{node.name}.{each.name}", each


def _is_test(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return node.name.startswith("test") and not any(map(_is_fixture, node.decorator_list))


def _is_fixture(decorator: ast.expr) -> bool:
    """Return whether a decorator makes a fixture, such as ``@pytest.fixture(scope="module")``."""
    function = decorator.func if isinstance(decorator, ast.Call) else decorator
    return ast.unparse(function).rpartition(".")[2] == "fixture"


def _is_collected(node: ast.ClassDef) -> bool:
    if any(ast.unparse(each) == "__test__ = False" for each in node.body):
        return False
    is_case = any(ast.unparse(base).endswith("TestCase") for base in node.bases)
    return is_case or (_is_plain_tests(node) and not _has_init(node))


def _is_plain_tests(node: ast.ClassDef) -> bool:
    is_case = any(ast.unparse(base).endswith("TestCase") for base in node.bases)
    tests = [each for each in node.body if isinstance(each, _FUNCTION) and _is_test(each)]
    return node.name.startswith("Test") and not is_case and bool(tests)


def _has_init(node: ast.ClassDef) -> bool:
    return any(isinstance(each, _FUNCTION) and each.name == "__init__" for each in node.body)


def _yields(node: ast.AST) -> bool:
    """Return whether a function itself, not a nested function, yields."""
    return any(
        isinstance(child, ast.Yield | ast.YieldFrom)
        or (not isinstance(child, _FUNCTION | ast.Lambda | ast.ClassDef) and _yields(child))
        for child in ast.iter_child_nodes(node)
    )


def _can_fail(node: ast.stmt) -> bool:
    if isinstance(node, _FUNCTION | ast.ClassDef):
        return False
    failing = (ast.Assert, ast.Raise, ast.Call)
    return any(isinstance(each, failing) for each in ast.walk(node))
