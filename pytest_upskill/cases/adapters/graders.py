"""Graders of other tools: their checks of texts and files, and what is left out of a case."""

from __future__ import annotations

import re
from collections.abc import Sequence
from shlex import quote
from typing import Any, ClassVar

from pytest_upskill.cases.adapters.adapter import Draft, Shape
from pytest_upskill.cases.adapters.patterns import python_pattern
from pytest_upskill.checks.calls import CallOf, ToolCalled
from pytest_upskill.checks.command import RunsCommand
from pytest_upskill.checks.files import FileExists, InFile, is_safe_name
from pytest_upskill.checks.judge import Judge
from pytest_upskill.checks.result import Check
from pytest_upskill.checks.text import Contains, ContainsAny, NotContains, NotRegex, Regex

NOT_CHECKED = "what an agent does on its way is not checked"

SHELL = ("bash",)
"""The shell of any agent."""

BUDGET = "a budget is not a check of the answer"

BY_NAME = "an argument is not searched for by its name"

RUBRIC = "The answer passes this rubric: "

_NAMES = re.compile(r"(?:\(\?i\))?(\^?)\(?(?:\?:)?([\w:|-]+)\)?(\$?)")
_ALIASES = {
    "create": ("write", "write_file"),
    "create_file": ("write", "write_file"),
    "view": ("read", "read_file"),
    "task": ("agent",),
    "powershell": SHELL,
    "pwsh": SHELL,
}
"""Names of the same tools in other agents, by name in Copilot."""

_LEADING_FLAGS = re.compile(r"^\(\?([a-z]+)\)(.*)", re.DOTALL)


class Grader(Shape):
    """A grader of a tool; one that nothing here can decide is left out of its case."""

    measured: ClassVar[str] = ""
    """Which graders are read, and which are left out, for the documentation."""
    type: str = ""

    def read(self) -> Draft:
        """Return the checks of the grader.

        Raises:
            ValueError: Nothing here can decide it; the message says why.
        """
        raise NotImplementedError

    def draft(self) -> Draft:
        """Return the checks of the grader, or why it is left out."""
        try:
            return self.read()
        except ValueError as error:
            return Draft(left_out=(f"{self.type}: {error}",))


def texts_in(value: object) -> list[str]:
    """Return the texts in a value, which is one or a list.

    Raises:
        ValueError: There is none, or something else.
    """
    listed = value if isinstance(value, list) else [value]
    texts = [str(text) for text in listed if isinstance(text, str | int | float) and text != ""]
    if not texts or len(texts) < len(listed):
        raise ValueError("has no text to look for")
    return texts


def literals(
    value: object, *, ignore_case: bool, negate: bool = False, any_of: bool = False
) -> tuple[Check, ...]:
    """Make checks that all texts are in the answer, that one is, or that none is."""
    texts = texts_in(value)
    if not ignore_case:
        escaped = [re.escape(text) for text in texts]
        return patterns("|".join(escaped) if any_of and not negate else escaped, negate=negate)
    if any_of and not negate:
        return (ContainsAny(texts=tuple(texts)),)
    return tuple(NotContains(text=text) if negate else Contains(text=text) for text in texts)


def patterns(
    value: object, *, flags: str = "", negate: bool = False, any_of: bool = False
) -> tuple[Check, ...]:
    """Make checks that patterns of JavaScript or Go are all found, that one is, or that none is."""
    found = [python_pattern(text, flags) for text in texts_in(value)]
    if any_of and not negate:
        scoped = (_LEADING_FLAGS.sub(r"(?\1:\2)", each) for each in found)
        found = ["|".join(scoped)]
    return tuple(NotRegex(pattern=each) if negate else Regex(pattern=each) for each in found)


def in_file(file: object, checks: Sequence[Check]) -> tuple[InFile, ...]:
    """Make checks of the answer checks of a file that an agent leaves."""
    name = file_name(file)
    return tuple(InFile(file=name, check=check) for check in checks)


def file_exists(files: object) -> tuple[FileExists, ...]:
    """Make checks that an agent leaves files."""
    return tuple(FileExists(file=file_name(name)) for name in texts_in(files))


def files_gone(files: object) -> tuple[RunsCommand, ...]:
    """Make checks that an agent leaves no files of some names."""
    found = (file_name(name).removeprefix("**/").replace("[", "\\[") for name in texts_in(files))
    return tuple(
        RunsCommand(command=f'test -z "$(find . -type f -path {quote("./" + n)})"') for n in found
    )


def called(
    names: Sequence[str], pattern: str = "", *, least: int = 1, most: int | None = None
) -> ToolCalled:
    """Make a check of how often a tool is called with what matches a pattern."""
    return ToolCalled(calls=(call_of(names, pattern),), least=least, most=most)


def not_called(names: Sequence[str], pattern: str = "") -> ToolCalled:
    """Make a check that a tool is not called with what matches a pattern."""
    return called(names, pattern, least=0, most=0)


def call_of(names: Sequence[str], pattern: str = "") -> CallOf:
    """Return which calls are meant by names of tools and a pattern of JavaScript or Go.

    Raises:
        ValueError: The pattern is of more than one argument.
    """
    if '"' in pattern:
        raise ValueError("its pattern is of a call as JSON, and each argument is searched alone")
    return CallOf(names=tuple(names), pattern=python_pattern(pattern) if pattern else "")


def tools_named(pattern: str) -> tuple[str, ...]:
    """Return the names of the tools that a pattern of Copilot's tools means, in any agent.

    Raises:
        ValueError: It is more than a choice of names.
    """
    found = _NAMES.fullmatch(pattern)
    if not found:
        raise ValueError(f"{pattern!r} is no choice of names of tools")
    names = found[2].split("|")
    same = [other for name in names for other in _ALIASES.get(name.casefold(), ())]
    parts = [f"{'' if found[1] else '*'}{n}{'' if found[3] else '*'}" for n in names]
    return tuple(dict.fromkeys((*names, *same, *parts)))


def file_name(file: Any) -> str:
    """Return the name of a file in the workspace, in which ``*`` is a wildcard.

    Raises:
        ValueError: It is no such name.
    """
    name = str(file).removeprefix("./")
    if not is_safe_name(name):
        raise ValueError(f"{file!r} is not a path in the workspace")
    return name


def judged(texts: object, *, prefix: str = "") -> tuple[Judge, ...]:
    """Make statements for a judge of texts."""
    return tuple(Judge(statement=prefix + text.strip()) for text in texts_in(texts))
