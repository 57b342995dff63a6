"""Python: the answer's code parses and compiles, and is not run."""

from __future__ import annotations

import platform
from pathlib import Path

import pytest

from pytest_upskill.checks.compile import Compilers
from tests.compiling import build


def test_valid_code_passes_and_the_interpreter_is_named(compilers: Compilers) -> None:
    result = build(compilers, "python", "def f():\n    return 1")

    version = platform.python_version()
    assert result.passed
    assert result.message == f"compile python: builds (block at answer line 4; Python {version})"


@pytest.mark.parametrize(
    ("code", "line", "error"),
    [
        ("x = 1\nif x\n    pass", 5, "SyntaxError: expected ':'"),
        ("x = 1\n\n  y = 2", 6, "IndentationError: unexpected indent"),
        ("x = 1\nreturn x", 5, "SyntaxError: 'return' outside function"),
    ],
)
def test_an_error_is_reported_at_its_line_of_the_answer(
    compilers: Compilers, code: str, line: int, error: str
) -> None:
    result = build(compilers, "python", code)

    assert not result.passed
    assert f"answer line {line}: error: {error}" in result.message


def test_code_is_not_run(compilers: Compilers, tmp_path: Path) -> None:
    target = tmp_path / "written"

    result = build(compilers, "python", f"open({str(target)!r}, 'w').write('x')\nraise SystemExit")

    assert result.passed
    assert not target.exists()


def test_a_block_of_comments_fails(compilers: Compilers) -> None:
    result = build(compilers, "python", "# TODO: write it\n# later")

    assert not result.passed
    assert "it contains only comments" in result.message


def test_what_the_code_says_of_its_encoding_is_ignored(compilers: Compilers) -> None:
    result = build(compilers, "python", "# -*- coding: rot13 -*-\nx = 'ä'")

    assert result.passed


@pytest.mark.parametrize(
    "code",
    [
        "(" * 100_000,
        "x = " + "-" * 100_000 + "1",
        "[" * 40 + "1" + " for a in b]" * 40,
        "x = '\ud800\0'",
        "x = 1e" + "9" * 5000 + "\nint('" + "9" * 5000 + "')",
        "a." * 200_000 + "a",
    ],
    ids=["parentheses", "signs", "comprehensions", "surrogates", "digits", "attributes"],
)
def test_code_that_breaks_parsers_is_decided(compilers: Compilers, code: str) -> None:
    result = build(compilers, "python", code)

    assert result.message.startswith("compile python: ")
    assert "\n" not in result.message
