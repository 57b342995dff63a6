"""Assertions of other tools as parts of a case: checks by code, or statements for a judge."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from pytest_upskill.cases.adapters.adapter import Draft
from pytest_upskill.cases.adapters.choice import (
    UNCLEAR,
    choice_stated_by,
    normalize,
    type_of,
)
from pytest_upskill.cases.source.document import shown
from pytest_upskill.checks import AnyCheck
from pytest_upskill.checks.files import FileExists, InFile, is_safe_name
from pytest_upskill.checks.judge import Judge
from pytest_upskill.checks.result import Check
from pytest_upskill.checks.structure import JsonSchema
from pytest_upskill.checks.text import (
    Contains,
    ContainsAny,
    NotContains,
    NotRegex,
    Regex,
    pattern_problem,
)


class Unsupported(Exception):  # noqa: N818  a reason to skip a case, not an error of the code
    """An assertion that cannot be checked; the message says why."""


def part_of(assertion: object) -> Draft:
    """Read one assertion, a text or an object, of a tool that declares no types of its own.

    Raises:
        ValueError: It is invalid; the message is one line.
    """
    if isinstance(assertion, dict) and (choice := choice_stated_by(assertion)) is not None:
        return Draft(choice=choice)
    return _supported(lambda: checks_of(assertion))


def as_list(value: object) -> list[object]:
    """Return assertions as a list: an object maps types to values, or keys to statements."""
    if isinstance(value, dict) and "type" not in value:
        return [_typed(kind, part) for kind, part in value.items()]
    if value is None or isinstance(value, bool):
        return []
    return value if isinstance(value, list) else [value]


def _typed(kind: str, part: object) -> object:
    """Convert a type and its value to an assertion, with a text in case the type is unknown."""
    texts = part if isinstance(part, list) else [part]
    plain = "; ".join(str(text).strip() for text in texts if isinstance(text, str | int | float))
    return {"type": kind, "value": part} | ({"text": f"{kind}: {plain}"} if plain else {})


def check(kind: str, value: object, *, flags: str = "", file: object = None) -> Draft:
    """Make the checks of a type such as ``contains``; see `MAKERS` and `_SYNONYMS`.

    Args:
        kind: The type, in any spelling.
        value: A text or a list of texts, patterns, or a schema.
        flags: JavaScript's flags of a pattern.
        file: The file of an agent's workspace that is checked; None for the answer.
    """
    assertion = {"value": value, "flags": flags, "file": file}
    return _supported(lambda: _checks_of_kind(assertion, _plain(kind)))


def _supported(read: Callable[[], Iterable[AnyCheck]]) -> Draft:
    try:
        return Draft(checks=tuple(read()))
    except Unsupported as error:
        return Draft(left_out=(str(error),))


def statements(texts: object, *, prefix: str = "") -> Draft:
    """Make statements for a judge of a text or a list of texts; anything else is ignored.

    Args:
        texts: The texts.
        prefix: Text to put before each, if they are not statements by themselves.
    """
    listed = texts if isinstance(texts, list | tuple) else [texts]
    return _supported(
        lambda: _statements([text for text in listed if isinstance(text, str)], prefix)
    )


def _statements(texts: Iterable[str], prefix: str = "") -> Sequence[Judge]:
    nonblank = [text.strip() for text in texts if text.strip()]
    formula = None if prefix else next(filter(_FORMULA.fullmatch, nonblank), None)
    if formula:
        raise Unsupported(f"{formula!r} is a formula, which is not evaluated")
    return [Judge(statement=prefix + text) for text in nonblank]


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
        if problem := pattern_problem(pattern):
            what = f"pattern {text[:40]!r} is not a Python regular expression"
            raise Unsupported(f"{what}: {problem}")
        patterns.append(pattern)
    return patterns


_FLAGS = re.compile(r"(?:\(\?([imsx]+)\))?(.*)", re.DOTALL)
"""Inline flags at the start of a pattern, and the rest."""


def _regex_any(value: object, flags: str) -> Sequence[AnyCheck]:
    parts = [_FLAGS.fullmatch(pattern) for pattern in _patterns(value, flags)]
    local = [f"(?{part[1] or ''}:{part[2]})" for part in parts if part]
    return [Regex(pattern=each) for each in _patterns("|".join(local), "")]


def _json_schema(value: object, _flags: str) -> Sequence[AnyCheck]:
    # Imported late: the schema library is slow to import, and few cases need it.
    from pytest_upskill.checks.schemas import check_schema

    if not isinstance(value, dict) or not value:
        raise Unsupported("json_schema: the schema must be part of the assertion")
    check_schema(value)
    return [JsonSchema(schema=value)]


MAKERS: Mapping[str, Callable[[object, str], Sequence[AnyCheck]]] = {
    "contains": lambda value, _: [Contains(text=text) for text in _texts(value)],
    "not_contains": lambda value, _: [NotContains(text=text) for text in _texts(value)],
    "contains_any": lambda value, _: [ContainsAny(texts=tuple(_texts(value)))],
    "regex": lambda value, flags: [Regex(pattern=each) for each in _patterns(value, flags)],
    "regex_any": _regex_any,
    "not_regex": lambda value, flags: [NotRegex(pattern=each) for each in _patterns(value, flags)],
    "json_schema": _json_schema,
    # Of an agent that comes to its end, as every graded run does: it says something.
    "exit_success": lambda *_: [Regex(pattern=r"\S")],
}
"""Functions that make the checks of a type from its value and the flags of a pattern."""


def checks_of(assertion: object) -> Sequence[AnyCheck]:
    """Make the checks of one assertion.

    Raises:
        Unsupported: No check here can decide it.
        ValueError: It is invalid; the message is one line.
    """
    if isinstance(assertion, str):
        return _checks_of_text(assertion)
    if not isinstance(assertion, dict):
        got = shown(assertion)
        raise ValueError(f"must be text or an object, got {got}")  # noqa: TRY004  a file's mistake
    if (check := assertion.get("check")) and isinstance(check, dict):
        return _nested_checks(check)
    if kind := _kind(assertion):
        return _checks_of_kind(assertion, kind)
    if typed_keys := [key for key in assertion if _plain(key) in MAKERS and assertion[key]]:
        made = [
            _typed_checks(assertion | {"value": assertion[key]}, _plain(key)) for key in typed_keys
        ]
        return [check for checks in made for check in checks]
    if text := _first_text(assertion, (*_PROSE_KEYS, "value")) or _words(assertion):
        return _statements([text])
    if any(assertion.values()):
        raise Unsupported("has no known key: add 'text'")
    raise ValueError("is empty: add 'text'")


def _checks_of_text(text: str) -> Sequence[AnyCheck]:
    """Make the checks of a text: a statement, or a check such as ``not_contains:TODO``."""
    text = text.strip()
    if match := _TYPED_TEXT.fullmatch(text):
        kind = _plain(match[1])
        if kind in MAKERS or ("_" in kind and _WORD.fullmatch(match[2])):
            return _checks_of_kind({"value": match[2]}, kind)
    if pattern := alternatives(text):
        return [Regex(pattern=pattern)]
    return _statements([text], _SUBJECT if _WORD.fullmatch(text) else "")


def alternatives(text: str) -> str:
    """Return the pattern of a text such as ``refund|money back``, "" for any other text."""
    is_pattern = _ALTERNATIVES.fullmatch(text) and not pattern_problem(text)
    return f"(?i){text}" if is_pattern else ""


def _nested_checks(check: Mapping[str, Any]) -> Sequence[AnyCheck]:
    """Make the checks of a nested object, which has a type or maps types to values."""
    if _kind(check):
        return checks_of(check)
    made = [checks_of({"type": kind, "value": value}) for kind, value in check.items()]
    return [check for checks in made for check in checks]


def _checks_of_kind(assertion: Mapping[str, Any], kind: str) -> Sequence[AnyCheck]:
    if kind in MAKERS:
        return _typed_checks(assertion, kind)
    if kind in _FILE_EXISTS and not assertion.get("negate"):
        return _file_exists(assertion)
    if kind in _IN_FILE and (assertion.get("file") or assertion.get("path")):
        kind_of_text = "regex" if "pattern" in assertion else "contains"
        return _typed_checks(assertion, f"{_IN_FILE[kind]}{kind_of_text}")
    for words, why in _FEATURES:
        if not words.isdisjoint(kind.split("_")):
            raise Unsupported(f"{kind}: {why}")
    judged = ("value",) if not _JUDGED.isdisjoint(kind.split("_")) else ()
    if text := _first_text(assertion, (*_PROSE_KEYS, *judged)):
        return _statements([text])
    raise Unsupported(f"{kind}: unknown type of assertion")


def _first_text(assertion: Mapping[str, Any], keys: Iterable[str]) -> str:
    """Return the first value of ``keys`` that is not empty, "" if there is none or not text."""
    value = next((assertion[key] for key in keys if assertion.get(key)), None)
    return value if isinstance(value, str) else ""


def _words(assertion: Mapping[str, Any]) -> str:
    """Return the name if it is a phrase, ``Greets by name`` but not ``greets-by-name``, else ""."""
    name = _first_text(assertion, ("name", "id"))
    return "" if _SLUG.fullmatch(name) else name


def _kind(assertion: Mapping[str, Any]) -> str:
    """Return the normalized type of an assertion, "" if it has none."""
    return _plain(type_of(assertion))


def _plain(kind: str) -> str:
    """Normalize a type of assertion, and replace a synonym."""
    kind = re.sub("^(output|response|answer|content)_", "", normalize(kind))
    return _SYNONYMS.get(kind, kind)


def _typed_checks(assertion: Mapping[str, Any], kind: str) -> Sequence[AnyCheck]:
    if file := assertion.get("file") or assertion.get("path"):
        rest = {key: part for key, part in assertion.items() if key not in {"file", "path"}}
        return _in_file(file, _typed_checks(rest, kind))
    keys = (*_VALUE_KEYS, kind, kind.removeprefix("not_"))
    if assertion.get("negate"):
        kind = _plain(f"not_{kind}")
        if kind not in MAKERS:
            raise Unsupported(f"{kind}: unknown type of assertion")
    given = [key for key in keys if key in assertion]
    if not given and "text" in assertion:
        # Tried last: beside another key, it may just describe the assertion.
        given = ["text"]
    if not given and len(assertion) > 1:
        if "negate" not in assertion and (text := _first_text(assertion, _PROSE_KEYS)):
            return _statements([text])
        raise Unsupported(f"{kind}: no known key says what to look for")
    value = next((assertion[key] for key in given if assertion[key]), None)
    return MAKERS[kind](value, str(assertion.get("flags") or ""))


def _in_file(file: object, checks: Sequence[AnyCheck]) -> Sequence[AnyCheck]:
    """Make checks of an answer checks of a file that an agent leaves."""
    if not isinstance(file, str) or not is_safe_name(file.removeprefix("./")):
        raise Unsupported(f"{file!r} is not a path in the workspace")
    name = file.removeprefix("./")
    return [
        InFile(file=name, check=check) if isinstance(check, Check) else check for check in checks
    ]


def _file_exists(assertion: Mapping[str, Any]) -> Sequence[AnyCheck]:
    """Make the check that an agent leaves a file."""
    named = (assertion.get(key) for key in ("path", "file", "value", "pattern"))
    name = next((each for each in named if isinstance(each, str)), "").removeprefix("./")
    if not is_safe_name(name):
        raise Unsupported(f"file_exists: {name!r} is not a path in the workspace")
    return [FileExists(file=name)]


_SYNONYMS: Mapping[str, str] = {
    synonym: kind
    for kind, synonyms in (
        ("contains", "contain contains_all contains_phrase icontains icontains_all required_text"),
        ("contains", "includes includes_all"),
        ("not_contains", "not_contains_any not_contains_phrase not_icontains"),
        ("not_contains", "excludes excludes_all excludes_any forbidden_text not_includes"),
        ("not_contains", "does_not_contain not_contain"),
        ("contains_any", "icontains_any includes_any contains_one_of"),
        ("regex", "contains_pattern matches regex_match regex_includes matches_regex"),
        ("regex_any", "matches_any"),
        ("not_regex", "not_contains_pattern not_matches not_matches_any not_regex_any"),
        ("not_regex", "regex_exclude regex_excludes not_matches_regex"),
    )
    for synonym in synonyms.split()
}
_FILE_EXISTS = frozenset({"file_exists", "file_produced", "file_created", "artifact_exists"})
_IN_FILE: Mapping[str, str] = {"file_contains": "", "file_not_contains": "not_"}
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
)
"""Keys of the text to search for."""
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
_SLUG = re.compile(r"[\w.-]*", re.ASCII)
_WORD = re.compile("[!-~]+")
_SUBJECT = "The answer has this: "
"""Prefix that makes a statement of a single word."""
_TYPED_TEXT = re.compile(r"([a-z_-]+):(\S.*)", re.DOTALL)
_ALTERNATIVES = re.compile(r"[^|\s](?:[^|]{0,40}[^|\s])?(?:\|[^|\s](?:[^|]{0,40}[^|\s])?)+")
"""A pattern of alternatives, ``a|b c``, which is no table and no type such as ``str | None``."""
_FORMULA = re.compile(r"[\w.]+( ([<>]=?|[!=]=) [\w.]+)+")

_JUDGED = frozenset({"judge", "llm", "graded", "rubric", "semantic", "quality", "qualitative"})
"""Words in types of assertions whose value is a statement."""

_NO_FILES = "a single answer leaves no files"
_FEATURES: tuple[tuple[frozenset[str], str], ...] = tuple(
    (frozenset(words.split()), why)
    for words, why in (
        ("file files artifact artifacts", _NO_FILES),
        ("tool tools called", "a single answer calls no tools"),
        ("command cmd script exit exec shell run", "a single answer runs nothing"),
        ("trigger triggered skill activates activation", UNCLEAR),
        ("max min latency cost budget tokens", "a budget is not a check of the answer"),
    )
)
"""Words in types of assertions that a single answer cannot satisfy, and why."""
