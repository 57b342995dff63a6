"""Assertions of evals files: text for a judge, or an object that a program can check."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from pytest_upskill.checks import (
    Check,
    Contains,
    ContainsAny,
    JsonSchema,
    NotContains,
    NotRegex,
    Regex,
    compile_pattern,
)
from pytest_upskill.checks.judge import Judge
from pytest_upskill.formats.problems import shown

Checks = Sequence[Check | Judge]


class Unsupported(Exception):  # noqa: N818  a reason to skip a case, not an error of the code
    """What one answer to one question cannot show; the message names the feature."""


def checks_of(assertion: object) -> Checks:
    """Make the checks of one assertion.

    Raises:
        Unsupported: Nothing here can check it.
        ValueError: It is broken; one line says how.
    """
    if isinstance(assertion, str):
        return statements([assertion])
    if not isinstance(assertion, dict):
        got = shown(assertion)
        raise ValueError(f"must be text or an object, got {got}")  # noqa: TRY004  a file's mistake
    kind = _kind(assertion)
    if kind in _MAKERS:
        return _typed(assertion, kind)
    for words, why in _FEATURES:
        if not words.isdisjoint(kind.split("_")):
            raise Unsupported(f"{kind}: {why}")
    if text := _said(assertion, _STATEMENT_KEYS):
        return statements([text])
    if kind:
        raise Unsupported(f"{kind}: no such type of assertion is known")
    raise ValueError("says nothing: add 'text'")


def statements(texts: Iterable[str], *, prefix: str = "") -> Checks:
    """Make statements for a judge; blank ones say nothing."""
    return [Judge(statement=prefix + text.strip()) for text in texts if text.strip()]


def _said(assertion: Mapping[str, Any], keys: Iterable[str]) -> str:
    """Tell the text of the first of ``keys`` that says something."""
    value = next((assertion[key] for key in keys if assertion.get(key)), None)
    return value if isinstance(value, str) else ""


def _kind(assertion: Mapping[str, Any]) -> str:
    """Tell the type: as given, else the key that could be one."""
    for key in ("type", "kind"):
        if isinstance(assertion.get(key), str):
            return str(assertion[key]).strip().lower().replace("-", "_").replace(" ", "_")
    return next((key for key in assertion if key in _MAKERS), "")


def _typed(assertion: Mapping[str, Any], kind: str) -> Checks:
    if file := assertion.get("file") or assertion.get("path"):
        raise Unsupported(f"{kind} in {file!r}: {_NO_FILES}")
    if assertion.get("negate"):
        kind = _OPPOSITES.get(kind) or f"not_{kind}"
        if kind not in _MAKERS:
            raise Unsupported(f"{kind}: no such type of assertion is known")
    keys = (kind, kind.removeprefix("not_"), *_VALUE_KEYS)
    if assertion.keys().isdisjoint((*keys, "negate")) and (text := _said(assertion, _PROSE_KEYS)):
        return statements([text])
    value = next((assertion[key] for key in keys if assertion.get(key)), None)
    return _MAKERS[kind](value, str(assertion.get("flags") or ""))


def _texts(value: object) -> list[str]:
    listed = value if isinstance(value, list) else [value]
    texts = [text for text in listed if isinstance(text, str) and text]
    if not texts or len(texts) < len(listed):
        raise ValueError("holds no text to look for: add 'value'")
    return texts


def _patterns(value: object, flags: str) -> list[str]:
    """Read patterns of Python or JavaScript, flags made inline."""
    inline = "".join(flag for flag in "imsx" if flag in flags)
    patterns = []
    for text in _texts(value):
        pattern = (f"(?{inline})" if inline else "") + re.sub(r"\(\?<(?=[A-Za-z])", "(?P<", text)
        try:
            compile_pattern(pattern)
        except (re.error, RecursionError, OverflowError) as error:
            raise Unsupported(f"pattern {text[:40]!r} is none in Python: {error}") from None
        patterns.append(pattern)
    return patterns


def _contains(value: object, _flags: str) -> Checks:
    return [Contains(text=text) for text in _texts(value)]


def _not_contains(value: object, _flags: str) -> Checks:
    return [NotContains(text=text) for text in _texts(value)]


def _contains_any(value: object, _flags: str) -> Checks:
    return [ContainsAny(texts=tuple(_texts(value)))]


def _regex(value: object, flags: str) -> Checks:
    return [Regex(pattern=pattern) for pattern in _patterns(value, flags)]


def _not_regex(value: object, flags: str) -> Checks:
    return [NotRegex(pattern=pattern) for pattern in _patterns(value, flags)]


def _json_schema(value: object, _flags: str) -> Checks:
    # Slow to import: only the cases that need it pay for the schema library.
    from pytest_upskill.checks.schemas import check_schema

    if not isinstance(value, dict) or not value:
        raise Unsupported("json_schema: the schema must stand in the assertion")
    check_schema(value)
    return [JsonSchema(schema=value)]


_MAKERS: Mapping[str, Callable[[object, str], Checks]] = {
    **dict.fromkeys(
        ("contains", "contains_all", "contains_phrase", "includes", "output_contains"), _contains
    ),
    **dict.fromkeys(
        ("not_contains", "not_contains_phrase", "excludes", "output_not_contains"), _not_contains
    ),
    **dict.fromkeys(("contains_any", "output_contains_any"), _contains_any),
    **dict.fromkeys(("contains_pattern", "regex", "matches", "output_matches"), _regex),
    **dict.fromkeys(
        ("not_contains_pattern", "not_regex", "not_matches", "output_not_matches"), _not_regex
    ),
    "json_schema": _json_schema,
}
_OPPOSITES = {
    "includes": "excludes",
    "output_contains": "output_not_contains",
    "output_matches": "output_not_matches",
}
_VALUE_KEYS = (
    "value",
    "values",
    "phrase",
    "phrases",
    "substring",
    "substrings",
    "string",
    "strings",
    "pattern",
    "patterns",
    "schema",
    "expected",
    "text",
)
"""Where the text to look for stands, the plainest last: it may as well describe the assertion."""
_PROSE_KEYS = (
    "text",
    "description",
    "statement",
    "assertion",
    "expectation",
    "criterion",
    "behavior",
    "rubric",
    "pass_if",
    "check",
)
_STATEMENT_KEYS = (*_PROSE_KEYS, "value", "name", "id")

_NO_FILES = "a single answer leaves no files"
_FEATURES: tuple[tuple[frozenset[str], str], ...] = tuple(
    (frozenset(words.split()), why)
    for words, why in (
        ("file files artifact artifacts", _NO_FILES),
        ("tool tools called", "a single answer calls no tools"),
        ("command cmd script exit exec shell run", "a single answer runs nothing"),
        ("trigger triggered skill activates", "the skill is always in context, nobody chooses it"),
        ("max min latency cost budget tokens", "a budget is no check of the answer"),
    )
)
"""Words in types of assertions that need an agent, and why."""
