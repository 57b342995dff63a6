"""Static analysis of Python test code: whether it has tests, and what they need."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass

_FUNCTION = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True, kw_only=True)
class PythonTests:
    """The tests in test code, by pytest's default naming rules."""

    found: bool
    """Whether there are functions that pytest runs."""
    problem: str | None
    """Why the test code cannot decide a check, in one line; None if no reason is found."""
    modules: frozenset[str]
    """What it imports of the standard library."""


def find_tests(code: str) -> PythonTests:
    """Find the tests in test code."""
    try:
        parsed = ast.parse(code)
    except (SyntaxError, ValueError) as error:
        return PythonTests(found=False, problem=f"it is not Python: {error}", modules=frozenset())
    found = any(map(_is_test, parsed.body))
    runs = found or any(map(_can_fail, parsed.body))
    problem = "nothing runs: it has no test function and no statement that could fail"
    modules = frozenset(_standard_modules(parsed))
    return PythonTests(found=found, problem=None if runs else problem, modules=modules)


def _is_test(node: ast.stmt) -> bool:
    if isinstance(node, ast.ClassDef):
        is_case = any(ast.unparse(base).endswith("TestCase") for base in node.bases)
        return (is_case or node.name.startswith("Test")) and any(map(_is_test, node.body))
    return isinstance(node, _FUNCTION) and node.name.startswith("test")


def _can_fail(node: ast.stmt) -> bool:
    if isinstance(node, _FUNCTION | ast.ClassDef):
        return False
    return any(isinstance(each, ast.Assert | ast.Raise | ast.Call) for each in ast.walk(node))


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
