"""Checks: one assertion about an answer, and what came of it."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, ClassVar, NoReturn, Protocol, TypeVar, TypeVarTuple

from pytest_upskill.cpu_limit import call_limited

MAX_TEXT = 1 << 20
"""Characters of an answer that a pattern is searched in; what comes after does not count."""
MAX_MESSAGE = 200
"""Characters of a check's message."""

_SECONDS = 1.0
_MAX_QUOTE = 60
_Ts = TypeVarTuple("_Ts")
_R = TypeVar("_R")


class CheckError(Exception):
    """A check that could not be decided: the run is missing data, neither passed nor failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResult:
    """What one check found in one answer."""

    name: str
    """The key of the case file: ``contains``, ``compile`` …"""
    passed: bool
    message: str
    """One line that stands alone: what was looked for and what the answer said."""
    detail: str = ""
    """More lines for a reader who looks closer, such as the compiler's diagnostics."""


class Check(Protocol):
    """An assertion that needs nothing but the answer's text."""

    @property
    def name(self) -> str:
        """The key of the case file."""
        ...

    def check(self, text: str) -> CheckResult:
        """Tell whether ``text`` holds."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Compile:
    """The answer's code in ``language`` must build; a compiler decides, in a child process."""

    name: ClassVar[str] = "compile"

    language: str
    """A registered language: ``python``, ``c``, ``cpp`` or ``cuda``."""
    arch: str | None = None
    """CUDA architecture, ``sm_90`` unless given."""
    flags: tuple[str, ...] = ()
    """Extra compiler flags of the case's author, such as ``-std=c++20``."""
    files: Mapping[str, str] = field(default_factory=dict)
    """Headers the case supplies: relative name to text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contains:
    """The answer holds ``text``, whatever the case of the letters."""

    name: ClassVar[str] = "contains"

    text: str

    def check(self, text: str) -> CheckResult:
        """Look for the text."""
        if self.text.casefold() in text.casefold():
            return _passed(self.name, f" {_quoted(self.text)}: in the answer")
        return _failed(self.name, f" {_quoted(self.text)}: not in {_summary(text)}")


@dataclass(frozen=True, slots=True, kw_only=True)
class NotContains:
    """The answer does not hold ``text``, whatever the case of the letters."""

    name: ClassVar[str] = "not_contains"

    text: str

    def check(self, text: str) -> CheckResult:
        """Look for the text."""
        folded = text.casefold()
        start = folded.find(self.text.casefold())
        if start < 0:
            return _passed(self.name, f" {_quoted(self.text)}: not in the answer")
        # Folding moves columns a little, but never a line.
        place = _excerpt(text, *_line_column(folded, start))
        return _failed(self.name, f" {_quoted(self.text)}: found in {place}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainsAny:
    """The answer holds at least one of ``texts``, whatever the case of the letters."""

    name: ClassVar[str] = "contains_any"

    texts: tuple[str, ...]

    def check(self, text: str) -> CheckResult:
        """Look for each of the texts."""
        folded = text.casefold()
        for wanted in self.texts:
            if wanted.casefold() in folded:
                return _passed(self.name, f" {_quoted(wanted)}: in the answer")
        wanted = _cut(", ".join(map(_quoted, self.texts)), 80)
        return _failed(self.name, f" {wanted}: none in {_summary(text)}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Regex:
    """The pattern is found in the answer: Python's ``re``, flags inline."""

    name: ClassVar[str] = "regex"

    pattern: str

    def check(self, text: str) -> CheckResult:
        """Search for the pattern.

        Raises:
            CheckError: The search takes too long.
        """
        subject = f"{self.name} {_quoted(self.pattern)}"
        if _limited(subject, _find, self.pattern, text, 0) is not None:
            return _passed(self.name, f" {_quoted(self.pattern)}: found")
        hint = ""
        with suppress(CheckError):
            if _limited(subject, _find, self.pattern, text, re.IGNORECASE) is not None:
                hint = "; (?i) would find it"
        return _failed(self.name, f" {_quoted(self.pattern)}: not found in {_summary(text)}{hint}")


@dataclass(frozen=True, slots=True, kw_only=True)
class NotRegex:
    """The pattern is not found in the answer: Python's ``re``, flags inline."""

    name: ClassVar[str] = "not_regex"

    pattern: str

    def check(self, text: str) -> CheckResult:
        """Search for the pattern.

        Raises:
            CheckError: The search takes too long.
        """
        start = _limited(f"{self.name} {_quoted(self.pattern)}", _find, self.pattern, text, 0)
        if start is None:
            return _passed(self.name, f" {_quoted(self.pattern)}: not found")
        place = _excerpt(text, *_line_column(text, start))
        return _failed(self.name, f" {_quoted(self.pattern)}: found in {place}")


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonSchema:
    """The answer's JSON is valid: its ``json`` block, or the whole answer."""

    name: ClassVar[str] = "json_schema"

    schema: Mapping[str, Any]
    """Draft 2020-12, without references that lead out of it."""

    def check(self, text: str) -> CheckResult:
        """Validate the answer's JSON.

        Raises:
            CheckError: Validating takes too long.
        """
        # Slow to import: only the cases that need it pay for the schema library.
        from pytest_upskill.schemas import departures

        try:
            value = _json_of(text)
        except ValueError as error:
            return _failed(self.name, f": {error}")
        try:
            found = _limited(self.name, departures, self.schema, value)
        except RecursionError:
            raise CheckError(f"{self.name} refers to itself without end: mend the schema") from None
        if not found:
            return _passed(self.name, ": valid")
        more = f" ({len(found) - 1} more)" if len(found) > 1 else ""
        detail = "\n".join(_cut(departure, 500) for departure in found)
        return _failed(self.name, f": {_cut(found[0], 160)}{more}", detail=detail)


def compile_pattern(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """Compile a pattern, without Python's warnings of what later versions may read differently.

    Raises:
        re.error: It is no pattern.
        RecursionError: It is nested too deeply.
        OverflowError: It repeats too often.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return re.compile(pattern, flags)


def _find(pattern: str, text: str, flags: int) -> int | None:
    match = compile_pattern(pattern, flags).search(text, 0, MAX_TEXT)
    return match.start() if match else None


def _limited(subject: str, function: Callable[[*_Ts], _R], *args: *_Ts) -> _R:
    try:
        return call_limited(_SECONDS, function, *args)
    except TimeoutError:
        raise CheckError(f"{subject} took over {_SECONDS:g} s: simplify it") from None


def _json_of(text: str) -> Any:
    """Read the JSON of an answer; raise ValueError where there is none."""
    # Slow to import: only the cases that need it pay for the Markdown parser.
    from pytest_upskill.blocks import blocks, choose

    found = blocks(text)
    labelled = choose(found, "json")
    block = next(iter((labelled or choose(found, ""))[-1:]), None)
    try:
        return json.loads(block.code if block else text, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        if not labelled:
            languages = ", ".join(dict.fromkeys(each.language or "unlabelled" for each in found))
            raise ValueError(f"no JSON in the answer (blocks: {languages or 'none'})") from None
        line = labelled[-1].line + getattr(error, "lineno", 1) - 1
        what = getattr(error, "msg", error)
        raise ValueError(f"not JSON in line {line} of the answer: {what}") from None


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"JSON has no {constant}")


def _passed(name: str, what: str) -> CheckResult:
    return CheckResult(name=name, passed=True, message=_cut(name + what, MAX_MESSAGE))


def _failed(name: str, what: str, *, detail: str = "") -> CheckResult:
    message = _cut(name + what, MAX_MESSAGE)
    return CheckResult(name=name, passed=False, message=message, detail=detail)


def _summary(text: str) -> str:
    """Describe an answer in which something is missing."""
    if not text.strip():
        return "the answer, which is empty"
    return f"the answer ({len(text)} characters; begins {_quoted(text.lstrip(), 40)})"


def _line_column(text: str, offset: int) -> tuple[int, int]:
    """Tell line and column of an offset, both from 0."""
    return text.count("\n", 0, offset), offset - text.rfind("\n", 0, offset) - 1


def _excerpt(text: str, line: int, column: int) -> str:
    """Quote a line around a column, both from 0."""
    whole = text.split("\n")[line]
    start = max(0, column - 20) if len(whole) > _MAX_QUOTE else 0
    return f"line {line + 1}: {_quoted('…' * (start > 0) + whole[start:])}"


def _quoted(text: str, length: int = _MAX_QUOTE) -> str:
    return repr(text if len(text) <= length else f"{text[: length - 1]}…")


def _cut(text: str, length: int) -> str:
    """Shorten a text, its control characters made visible, to at most ``length`` characters."""
    text = "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode()
        for char in text[: length + 1]
    )
    return text if len(text) <= length else f"{text[: length - 1]}…"
