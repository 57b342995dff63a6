"""A document with the line and column of each value, and its problems: place, problem, fix."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Any, NamedTuple

from pydantic_core import ErrorDetails, ValidationError

from pytest_upskill.project.messages import safe_line

JsonPath = tuple[str | int, ...]
"""The keys and indices that lead to a value."""


class Offsets(NamedTuple):
    """Where an entry of an object begins, in characters; in an array both are the value's."""

    key: int
    value: int


MAX_DEPTH = 100
"""Maximum number of nested objects and arrays; too many exhaust the stack of some reader."""

TOO_DEEP = f"nested more than {MAX_DEPTH} levels deep: flatten it"

THOUSANDS = "a number has thousands of digits: write it as a string"
"""Message for a number that Python refuses to read."""

MAX_SHOWN = 40
"""Maximum number of characters of a wrong value in a message."""


_UNUSABLE = re.compile("[\0\ud800-\udfff]")
_PLAIN_KEY = re.compile(r"[\w$-]{1,60}")


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Problem:
    """One problem in a file."""

    line: int = 0
    """From 1; 0 for the file as a whole."""
    column: int = 0
    """From 1, in characters."""
    where: str = ""
    """The entry, such as ``cases[1].expected.regex``; empty for the whole document."""
    what: str
    """What is wrong and how to fix it, in one line."""
    is_hint: bool = False
    """Whether every measurement is the same with it; lint then does not fail."""

    @classmethod
    def in_text(cls, text: str, offset: int, what: str) -> Problem:
        """Make a problem at an offset in characters of a file's text."""
        line = text.count("\n", 0, offset) + 1
        return cls(line=line, column=offset - text.rfind("\n", 0, offset), what=what)

    def at(self, path: str) -> str:
        """Return the problem as one safe line, ``path:line:column: where: what``."""
        place = ":".join(str(part) for part in (path, self.line, self.column) if part)
        return safe_line(": ".join(part for part in (place, self.where, self.what) if part))


class BadFile(Exception):  # noqa: N818  it names the file, whose errors are its problems
    """A file that cannot be used.

    Attributes:
        problems: All problems that were found, in the order of the file.
    """

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(sorted(problems))
        super().__init__("\n".join(problem.what for problem in self.problems))


def shown(value: object) -> str:
    """Return a wrong value as JSON, shortened to `MAX_SHOWN` characters."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= MAX_SHOWN else f"{text[: MAX_SHOWN - 1]}…"


@dataclass(frozen=True, kw_only=True)
class Document:
    """A document with the offsets of its parts in the text."""

    value: Any
    text: str
    offsets: Mapping[JsonPath, Offsets]
    """Offsets of the values in the document, by path."""
    flaws: Sequence[tuple[JsonPath, Problem]] = ()
    """Problems that make a value ambiguous or invalid, such as a duplicate key, with its path."""

    def sound(self) -> Document:
        """Return the document.

        Raises:
            BadFile: The document has flaws.
        """
        if self.flaws:
            raise BadFile(problem for _, problem in self.flaws)
        return self

    def place(self, path: JsonPath) -> tuple[int, int]:
        """Return the line and the column of the value at ``path``, both from 1."""
        return self.line_column(self.offsets[path].value)

    def problem(
        self,
        path: JsonPath,
        what: str,
        *,
        key: bool = False,
        missing: str | None = None,
        is_hint: bool = False,
    ) -> Problem:
        """Make a problem of the value at ``path``.

        Args:
            path: A path that exists in the document.
            what: What is wrong and how to fix it.
            key: Whether the problem is in the key, not in the value.
            missing: The key that the object at ``path`` lacks, if any.
            is_hint: Whether every measurement is the same with it.
        """
        offsets = self.offsets[path]
        line, column = self.line_column(offsets.key if key else offsets.value)
        where = where_is(path if missing is None else (*path, missing))
        return Problem(line=line, column=column, where=where, what=what, is_hint=is_hint)

    def line_column(self, offset: int) -> tuple[int, int]:
        """Return the line and the column of an offset, both from 1."""
        line = bisect_right(self._line_starts, offset)
        return line, offset - self._line_starts[line - 1] + 1

    @cached_property
    def _line_starts(self) -> Sequence[int]:
        return [0, *accumulate(len(line) + 1 for line in self.text.split("\n"))]


def unusable(text: str) -> str:
    """Return what is wrong with a text that has a NUL or half a surrogate pair, else ""."""
    match = _UNUSABLE.search(text)
    if not match:
        return ""
    if match[0] == "\0":
        return r"\u0000 is not allowed in text: remove it"
    return f"\\u{ord(match[0]):x} is half a character: write the character itself"


_MESSAGES: Mapping[str, str] = {
    "bool_type": "must be true or false, got {got}",
    "dict_type": "must be an object with a name for each value, got {got}",
    "extra_forbidden": "unknown key",
    "finite_number": "must be a number, got {got}",
    "float_parsing": "must be a number such as 0.2, got {got}",
    "float_type": "must be a number such as 0.2, got {got}",
    "greater_than": "must be more than {gt:g}, got {got}",
    "greater_than_equal": "must be at least {ge:g}, got {got}",
    "int_parsing": "must be a whole number, got {got}",
    "int_type": "must be a whole number, got {got}",
    "less_than_equal": "must be at most {le:g}, got {got}",
    "list_type": "must be a list, got {got}",
    "literal_error": "must be {expected}, got {got}",
    "missing": "missing",
    "model_type": "must be an object, got {got}",
    "string_pattern_mismatch": "must not be blank",
    "string_too_long": "must have at most {max_length} characters",
    "string_too_short": "must not be empty",
    "string_type": "must be a string, got {got}",
    "too_short": "must not be empty",
    "value_error": "{error}",
}
"""Messages by pydantic's type of error, with the fields of its context."""


def explained(error: ErrorDetails) -> str:
    """Return an error of pydantic in the words of this program."""
    context = error.get("ctx", {})
    message = _MESSAGES.get(error["type"], "{msg}")
    what = message.format(got=shown(error["input"]), msg=error["msg"], **context)
    if error["type"] == "list_type" and isinstance(error["input"], str):
        return f"{what}: write [{shown(error['input'])}]"
    if context.get("le") == 1 and (fraction := float(error["input"]) / 100) <= 1:
        return f"{what}: write {fraction:g} for {100 * fraction:g} %"
    return what


def translated(
    document: Document,
    error: ValidationError,
    *,
    meant: Callable[[JsonPath], str] = lambda _: "",
) -> list[Problem]:
    """Translate the errors of pydantic into problems with line and column.

    Args:
        document: The document, of which a value was validated.
        error: The errors.
        meant: Returns what to add to the message about the unknown key at a path.
    """
    problems = []
    errors = error.errors(include_url=False)
    odd = {details["loc"][:-1] for details in errors if details["type"] == "extra_forbidden"}
    for details in errors:
        if details["type"] == "missing" and details["loc"][:-1] in odd:
            continue  # the unknown key is probably the one that is missing
        path: JsonPath = ()
        for step in details["loc"]:  # some, such as the branch of a union, are not in the file
            if (*path, step) in document.offsets:
                path = (*path, step)
        is_unknown = details["type"] == "extra_forbidden"
        missing = str(details["loc"][-1]) if details["type"] == "missing" else None
        what = explained(details)
        if is_unknown:
            what += meant(path)
        elif details["type"] == "model_type" and isinstance(next(reversed(path), None), str):
            what += meant((*path, ""))
        problems.append(document.problem(path, what, key=is_unknown, missing=missing))
    return problems


def where_is(path: JsonPath) -> str:
    """Return a path as messages show it, such as ``cases[1].expected.regex``."""
    return "".join(map(_segment, path)).removeprefix(".")


def _segment(step: str | int) -> str:
    if isinstance(step, int):
        return f"[{step}]"
    if _PLAIN_KEY.fullmatch(step):
        return f".{step}"
    return f"[{json.dumps(step, ensure_ascii=False)[:62]}]".replace("\\\\", "\\")
