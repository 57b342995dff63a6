"""The checks that adapters make: of texts, files and calls, and statements for a judge."""

import re
from collections.abc import Iterable, Mapping, Sequence
from shlex import quote
from typing import Any

from pytest_upskill.cases.adapters.adapter import Reader
from pytest_upskill.cases.adapters.draft import Flaw, as_list, left_out
from pytest_upskill.checks import AnyCheck, Judge
from pytest_upskill.checks.calls import CallOf, ToolCalled
from pytest_upskill.checks.files import FileExists, InFile, RunsCommand, is_safe_name
from pytest_upskill.checks.text import (
    Contains,
    ContainsAny,
    NotContains,
    NotRegex,
    Regex,
    TextCheck,
    pattern_problem,
)

SHELL = ("bash",)
"""The shell of any agent."""

RUBRIC = "The answer passes this rubric: "

UNDECIDED = "no check here can decide it"

Given = Mapping[str, Any]
"""An object of a case file."""

Checks = Iterable[AnyCheck]

FLAGGED = re.compile(r"\(\?[aimsux]+\)\S")
"""The beginning of a pattern with flags, such as ``(?i)refund``."""

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


def is_on(value: object) -> bool:
    """Return whether a switch is on; YAML 1.1 has more words for off than false."""
    return bool(value) and str(value).lower() not in {"false", "no", "off"}


def texts_in(value: object) -> list[str]:
    """Return the texts in a value, which is one or a list."""
    listed = as_list(value)
    if any(isinstance(each, bool) for each in listed):
        raise Flaw("is true or false, not text: quote it")
    texts = [str(text) for text in listed if isinstance(text, str | int | float) and text != ""]
    if not texts or len(texts) < len(listed):
        raise Flaw("has no text to look for: add one")
    return texts


def literals(
    value: object, *, ignore_case: bool = True, negate: bool = False, any_of: bool = False
) -> Sequence[TextCheck]:
    """Make checks that all texts are in the answer, that one is, or that none is.

    A text that begins with a flag is a pattern.
    """
    texts = texts_in(value)
    if not ignore_case or any(map(FLAGGED.match, texts)):
        found = [text if FLAGGED.match(text) else re.escape(text) for text in texts]
        return patterns(found, flags="i" * ignore_case, negate=negate, any_of=any_of)
    if any_of and not negate:
        return [ContainsAny(texts=tuple(texts))]
    return [NotContains(text=text) if negate else Contains(text=text) for text in texts]


def patterns(
    value: object, *, flags: str = "", negate: bool = False, any_of: bool = False
) -> Sequence[TextCheck]:
    """Make checks that patterns are all found, that one is, or that none is."""
    found = [python_pattern(text, flags) for text in texts_in(value)]
    if any_of and not negate:
        found = ["|".join(_LEADING_FLAGS.sub(r"(?\1:\2)", each) for each in found)]
    return [NotRegex(pattern=each) if negate else Regex(pattern=each) for each in found]


_LEADING_FLAGS = re.compile(r"^(?:\(\?([a-z]+)\))?(.*)", re.DOTALL)


def python_pattern(pattern: str, flags: str = "") -> str:
    """Return a pattern of Python, JavaScript or Go as one of Python.

    Args:
        pattern: The pattern.
        flags: The flags of JavaScript.
    """
    found = re.sub(r"\(\?<(?=[A-Za-z_])", "(?P<", pattern)
    found = re.sub(r"(?<!\\)\\z", r"\\Z", found)
    kept = "".join(flag for flag in "imsx" if flag in flags)
    if kept:
        given = re.match(r"\(\?([a-z]+)\)", found)
        own, rest = (given[1], found[given.end() :]) if given else ("", found)
        found = f"(?{''.join(dict.fromkeys(kept + own))}){rest}"
    if problem := pattern_problem(found):
        raise left_out(f"pattern {found[:40]!r} is not a Python regular expression: {problem}")
    return found


def judged(texts: object, *, prefix: str = "") -> Sequence[Judge]:
    """Make statements for a judge of texts."""
    for name in filter(re.compile(r"[\w./-]+\.(md|txt|ya?ml|json)").fullmatch, texts_in(texts)):
        raise left_out(f"the file {name} is not read: write its text here")
    return [Judge(statement=prefix + text.strip()) for text in texts_in(texts)]


def statements(meaning: str, prefix: str = "") -> Reader:
    """Return how texts are read that are statements for a judge."""
    return Reader(meaning, lambda value: judged(value, prefix=prefix))


def in_file(file: object, checks: Checks) -> Checks:
    """Make checks of the answer checks of a file that an agent leaves."""
    name = file_name(file)
    return [InFile(file=name, check=each) for each in checks if isinstance(each, TextCheck)]


def file_exists(files: object) -> Sequence[FileExists]:
    """Make checks that an agent leaves files."""
    return [FileExists(file=file_name(name)) for name in texts_in(files)]


def files_gone(files: object) -> Sequence[RunsCommand]:
    """Make checks that an agent leaves no files of some names."""
    found = (file_name(name).removeprefix("**/").replace("[", "\\[") for name in texts_in(files))
    paths = (quote("./" + name) for name in found)
    return [RunsCommand(command=f'test -z "$(find . -type f -path {each})"') for each in paths]


def file_name(file: Any) -> str:
    """Return the name of a file in the workspace, in which ``*`` is a wildcard."""
    name = str(file).removeprefix("./")
    if not is_safe_name(name):
        raise left_out(f"{file!r} is not a path in the workspace")
    return name


def called(
    names: Sequence[str], pattern: str = "", *, least: int = 1, most: int | None = None
) -> ToolCalled:
    """Make a check of how often a tool is called with what matches a pattern."""
    return ToolCalled(calls=(call_of(names, pattern),), least=least, most=most)


def each_called(tools: object, *, least: int = 1, most: int | None = None) -> Checks:
    """Make checks of how often each of some tools is called."""
    return [called((tool,), least=least, most=most) for tool in texts_in(tools)]


def call_of(names: Sequence[str], pattern: str = "") -> CallOf:
    """Return which calls are meant by names of tools and a pattern."""
    if '"' in pattern:
        raise left_out("its pattern is of a call as JSON, and each argument is searched alone")
    return CallOf(names=tuple(names), pattern=python_pattern(pattern) if pattern else "")


def tools_named(pattern: object) -> tuple[str, ...]:
    """Return the names of the tools that a pattern of Copilot's tools means, in any agent."""
    found = _NAMES.fullmatch(pattern) if isinstance(pattern, str) else None
    if not found:
        raise left_out(f"{pattern!r} is no choice of names of tools")
    names = found[2].split("|")
    same = [other for name in names for other in _ALIASES.get(name.casefold(), ())]
    parts = [f"{'' if found[1] else '*'}{n}{'' if found[3] else '*'}" for n in names]
    return tuple(dict.fromkeys((*names, *same, *parts)))
