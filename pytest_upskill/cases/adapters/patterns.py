"""Patterns of JavaScript and Go as patterns of Python's ``re``, or why there is none."""

from __future__ import annotations

import re

from pytest_upskill.cases.adapters.draft import left_out
from pytest_upskill.checks.text import pattern_problem

_TOKEN = re.compile(
    r"(\\k<\w+>|\\.|\[:\w+:\]|\[\^\]|\[\]|\[\^?|\]|\(\?<(?=[A-Za-z_$])|\$|\{(?=,))", re.DOTALL
)
_OUTSIDE = {
    **{rf"\{letter}": rf"(?a:\{letter})" for letter in "wdbWDB"},
    r"\z": r"\Z",
    "$": r"\Z",
    "[^]": r"[\s\S]",
    "[]": "(?!)",
    "(?<": "(?P<",
    "{": r"\{",
}
"""What stands for a token: there, letters and digits are those of ASCII, and ``$`` is the end."""

_IN_CLASS = {
    r"\w": "A-Za-z0-9_",
    r"\d": "0-9",
    "[:alpha:]": "A-Za-z",
    "[:digit:]": "0-9",
    "[:alnum:]": "A-Za-z0-9",
    "[:space:]": r"\s",
}
_HALVES = re.compile(r"\\u[dD][89a-fA-F]")
_FLAGS = re.compile(r"\(\?([a-z]+)\)")


def python_pattern(pattern: str, flags: str = "") -> str:
    """Convert a pattern of JavaScript or Go to one of Python.

    Args:
        pattern: The pattern; it may begin with flags such as ``(?i)``.
        flags: JavaScript's flags.

    Raises:
        Flaw: Python cannot express it.
    """
    inline = _FLAGS.match(pattern)
    given = flags + (inline[1] if inline else "")
    kept = "".join(flag for flag in "ims" if flag in given)
    converted = _converted(pattern[inline.end() if inline else 0 :], multiline="m" in kept)
    if _HALVES.search(pattern):
        raise left_out(f"pattern {pattern[:40]!r} has halves of characters: write the characters")
    full = f"(?{kept}){converted}" if kept else converted
    if problem := pattern_problem(full):
        raise left_out(f"pattern {pattern[:40]!r} is not a Python regular expression: {problem}")
    return full


def _converted(pattern: str, *, multiline: bool) -> str:
    outside = _OUTSIDE | ({"$": "$"} if multiline else {})
    converted: list[str] = []
    in_class = False
    for token in _TOKEN.split(pattern):
        if in_class:
            converted.append(_IN_CLASS.get(token, token))
            in_class = token != "]"  # noqa: S105  no password
        else:
            name = token[3:-1] if token.startswith(r"\k<") else ""
            converted.append(f"(?P={name})" if name else outside.get(token, token))
            in_class = token in {"[", "[^"}
    return "".join(converted)
