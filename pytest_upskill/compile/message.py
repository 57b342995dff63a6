"""Results of checks, with their messages, from builds and test runs."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_upskill.checks import CheckResult, Compile, Sandboxed
from pytest_upskill.checks.blocks import Block
from pytest_upskill.compile.language import Language
from pytest_upskill.compile.toolchain import Built

MAX_LINES = 40
MAX_CHARACTERS = 8 << 10
MAX_NAMES = 5
"""Maximum lines and characters of diagnostics, and maximum file names, in a result."""


def found_languages(found: tuple[Block, ...]) -> str:
    """Return the languages of an answer's code blocks as text."""
    languages = dict.fromkeys(block.language or "unlabelled" for block in found)
    return f"found: {', '.join(languages)}" if languages else "no code block at all"


def describe(
    check: Sandboxed, language: Language, units: tuple[Block, ...], built: Built
) -> CheckResult:
    """Make the result of a check from the build or test run of its code blocks."""
    named = [unit.name or f"block at answer line {unit.line}" for unit in units]
    where = ", ".join(named[:MAX_NAMES]) + (" …" if len(named) > MAX_NAMES else "")
    finding = f"{built.message} ({where}; {built.compiler})"
    if not all(unit.closed for unit in units):
        finding += "; its fence is never closed: the answer seems to be cut off"
    message = f"{check.name} {language.name}: {finding}"
    return result(check, built.passed, message, _cut(built.diagnostics))


def result(check: Sandboxed, passed: bool, message: str, detail: str = "") -> CheckResult:
    """Make the result of a check."""
    return CheckResult(name=check.name, passed=passed, message=message, detail=detail)


def unbuilt(check: Sandboxed) -> tuple[CheckResult, ...]:
    """Make a failed result for each of a check's ``requires``, for code that does not build."""
    return tuple(
        CheckResult(
            name=requirement.name,
            passed=False,
            message=f"{requirement.name}: the code does not build",
        )
        for requirement in (check.requires if isinstance(check, Compile) else ())
    )


def _cut(lines: Sequence[str]) -> str:
    text = "\n".join(lines[:MAX_LINES])[:MAX_CHARACTERS]
    return f"{text}\n… ({len(lines)} lines)" if len(lines) > MAX_LINES else text
