"""The checks of an assertion with a type that code can decide, such as contains or regex."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from pytest_upskill.checks import (
    Check,
    Contains,
    ContainsAny,
    FileExists,
    InFile,
    JsonSchema,
    NotContains,
    NotRegex,
    Regex,
    compile_pattern,
)
from pytest_upskill.checks.judge import Judge

Checks = Sequence[Check | Judge | FileExists | InFile]


class Unsupported(Exception):  # noqa: N818  a reason to skip a case, not an error of the code
    """An assertion that cannot be checked on a single answer; the message names the feature."""


def _texts(value: object) -> list[str]:
    listed = value if isinstance(value, list) else [value]
    texts = [text for text in listed if isinstance(text, str) and text]
    if not texts or len(texts) < len(listed):
        raise ValueError("has no text to look for: add 'value'")
    return texts


def _patterns(value: object, flags: str) -> list[str]:
    """Convert Python or JavaScript patterns to Python patterns with inline flags."""
    inline = "".join(flag for flag in "imsx" if flag in flags)
    patterns = []
    for text in _texts(value):
        pattern = (f"(?{inline})" if inline else "") + re.sub(r"\(\?<(?=[A-Za-z])", "(?P<", text)
        try:
            compile_pattern(pattern)
        except (re.error, RecursionError, OverflowError) as error:
            raise Unsupported(
                f"pattern {text[:40]!r} is not a Python regular expression: {error}"
            ) from None
        patterns.append(pattern)
    return patterns


_FLAGS = re.compile(r"(?:\(\?([imsx]+)\))?(.*)", re.DOTALL)
"""Inline flags at the start of a pattern, and the rest."""


def _regex_any(value: object, flags: str) -> Checks:
    parts = [_FLAGS.fullmatch(pattern) for pattern in _patterns(value, flags)]
    local = [f"(?{part[1] or ''}:{part[2]})" for part in parts if part]
    return [Regex(pattern=each) for each in _patterns("|".join(local), "")]


def _json_schema(value: object, _flags: str) -> Checks:
    # Imported late: the schema library is slow to import, and few cases need it.
    from pytest_upskill.checks.schemas import check_schema

    if not isinstance(value, dict) or not value:
        raise Unsupported("json_schema: the schema must be part of the assertion")
    check_schema(value)
    return [JsonSchema(schema=value)]


MAKERS: Mapping[str, Callable[[object, str], Checks]] = {
    "contains": lambda value, _: [Contains(text=text) for text in _texts(value)],
    "not_contains": lambda value, _: [NotContains(text=text) for text in _texts(value)],
    "contains_any": lambda value, _: [ContainsAny(texts=tuple(_texts(value)))],
    "regex": lambda value, flags: [Regex(pattern=each) for each in _patterns(value, flags)],
    "regex_any": _regex_any,
    "not_regex": lambda value, flags: [NotRegex(pattern=each) for each in _patterns(value, flags)],
    "json_schema": _json_schema,
}
"""Functions that make the checks of a type from its value and the flags of a pattern."""
