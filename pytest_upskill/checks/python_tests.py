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
    """Find the tests in test code.

    Raises:
        SyntaxError: The code is not valid Python.
        ValueError: The code contains a null byte.
    """
    parsed = ast.parse(code)
    tests = dict(_tests(parsed.body))
    problem = next((f"{name} {reason}" for name, reason in tests.items() if reason), None)
    if not tests and not any(map(_can_fail, parsed.body)):
        problem = "nothing runs: it has no test function and no statement that could fail"
    modules = frozenset(_standard_modules(parsed))
    return PythonTests(found=bool(tests), problem=problem, modules=modules)


def _tests(body: list[ast.stmt], owner: str = "") -> Iterator[tuple[str, str]]:
    """Yield the names of tests, with the reason why pytest would not run one, else ""."""
    for node in body:
        if isinstance(node, ast.ClassDef) and not owner:
            is_case = any(ast.unparse(base).endswith("TestCase") for base in node.bases)
            if is_case or node.name.startswith("Test"):
                tests = [*_tests(node.body, f"{node.name}.")]
                names = {getattr(each, "name", "") for each in node.body}
                if tests and "__init__" in names and not is_case:
                    tests = [(node.name, "has an __init__, so pytest does not collect it")]
                yield from tests
        elif isinstance(node, _FUNCTION) and node.name.startswith("test"):
            decorators = (ast.unparse(each).partition("(")[0] for each in node.decorator_list)
            if not any(name.endswith("fixture") for name in decorators):
                reason = "is a generator, which pytest does not run" if _yields(node) else ""
                yield owner + node.name, reason


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
