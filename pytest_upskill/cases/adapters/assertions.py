"""Assertions of tools that declare no types of their own: checks by code, or statements."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from pytest_upskill.cases.adapters import make
from pytest_upskill.cases.adapters.adapter import Reader, reader_of_each
from pytest_upskill.cases.adapters.choice import UNCLEAR, normalize
from pytest_upskill.cases.adapters.draft import Flaw, as_list, left_out
from pytest_upskill.cases.source.document import shown
from pytest_upskill.checks import AnyCheck
from pytest_upskill.checks.judge import Judge
from pytest_upskill.checks.text import Regex, pattern_problem


def items_of(value: object) -> list[object]:
    """Return assertions as a list: an object maps types to values, or keys to statements."""
    if isinstance(value, dict) and "type" not in value:
        return [_typed(kind, part) for kind, part in value.items()]
    return [] if isinstance(value, bool) else as_list(value)


def _typed(kind: str, part: object) -> object:
    """Convert a type and its value to an assertion, with a text in case the type is unknown."""
    texts = as_list(part)
    plain = "; ".join(str(text).strip() for text in texts if isinstance(text, str | int | float))
    return {"type": kind, "value": part} | ({"text": f"{kind}: {plain}"} if plain else {})


def checks_of(assertion: object) -> Sequence[AnyCheck]:
    """Make the checks of one assertion, a text or an object."""
    if isinstance(assertion, str):
        return _checks_of_text(assertion.strip())
    if not isinstance(assertion, dict):
        raise Flaw(f"must be text or an object, got {shown(assertion)}")
    if (nested := assertion.get("check")) and isinstance(nested, dict):
        return checks_of(nested) if _kind(nested) else _of_all(_by_type(nested))
    if kind := _kind(assertion):
        return _checks_of_kind(assertion, kind)
    if typed := [key for key in assertion if _plain(key) in _MAKERS and assertion[key]]:
        return _of_all({**assertion, "type": key, "value": assertion[key]} for key in typed)
    if text := _first_text(assertion, (*_PROSE_KEYS.split("|"), "value")):
        return stated([text])
    if any(assertion.values()):
        raise left_out("has no known key: add 'text'")
    raise Flaw("is empty: add 'text'")


ASSERTIONS = reader_of_each("assertions: texts or objects", checks_of, items_of)


def _of_all(assertions: Iterable[Mapping[str, Any]]) -> Sequence[AnyCheck]:
    return [check for each in assertions for check in checks_of(each)]


def _by_type(check: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the assertions of an object that maps types to values, or to lists of objects."""
    for kind, value in check.items():
        if isinstance(value, list) and value and all(isinstance(each, dict) for each in value):
            yield from ({"type": kind, **each} for each in value)
        else:
            yield {"type": kind, "value": value}


def stated(texts: Iterable[str], prefix: str = "") -> Sequence[Judge]:
    """Make statements for a judge of texts that are not blank."""
    nonblank = [text.strip() for text in texts if text.strip()]
    formula = None if prefix else next(filter(_FORMULA.fullmatch, nonblank), None)
    if formula:
        raise left_out(f"{formula!r} is a formula, which is not evaluated")
    return [Judge(statement=prefix + text) for text in nonblank]


def _checks_of_text(text: str) -> Sequence[AnyCheck]:
    """Make the checks of a text: a statement, or a check such as ``not_contains:TODO``."""
    if match := _TYPED_TEXT.fullmatch(text):
        kind = _plain(match[1])
        if kind in _MAKERS or ("_" in kind and _WORD.fullmatch(match[2])):
            return _checks_of_kind({"value": match[2]}, kind)
    if pattern := _alternatives(text):
        return [Regex(pattern=pattern)]
    return stated([text], "The answer has this: " if _WORD.fullmatch(text) else "")


def _alternatives(text: str) -> str:
    """Return the pattern of a text such as ``refund|money back``, "" for any other text."""
    is_pattern = _ALTERNATIVES.fullmatch(text) and not pattern_problem(text)
    return f"(?i){text}" if is_pattern else ""


def _checks_of_kind(assertion: Mapping[str, Any], kind: str) -> Sequence[AnyCheck]:
    file = assertion.get("file") or assertion.get("path")
    if kind in _FILE_EXISTS and not assertion.get("negate"):
        return make.file_exists(file or assertion.get("value") or assertion.get("pattern"))
    if kind in _IN_FILE and file:
        kind = _IN_FILE[kind] + ("regex" if "pattern" in assertion else "contains")
    if kind in _MAKERS:
        return make.in_file(file, _made(assertion, kind)) if file else _made(assertion, kind)
    words = set(kind.split("_"))
    for features, why in _FEATURES.items():
        if not words.isdisjoint(features.split()):
            raise left_out(f"{kind}: {why}")
    judged = () if words.isdisjoint(_JUDGED) else ("value",)
    if text := _first_text(assertion, (*_PROSE_KEYS.split("|"), *judged)):
        return stated([text])
    raise left_out(f"{kind}: unknown type of assertion")


def _made(assertion: Mapping[str, Any], kind: str) -> Sequence[AnyCheck]:
    """Make the checks of a known type, whose value one of several keys has."""
    if assertion.get("negate"):
        kind = _plain(f"not_{kind}")
        if kind not in _MAKERS:
            raise left_out(f"{kind}: unknown type of assertion")
    bare = kind.removeprefix("not_")
    # The last one is tried last: beside another key, it may just describe the assertion.
    given = [
        assertion[key] for key in (*_VALUE_KEYS.split("|"), kind, bare, "text") if key in assertion
    ]
    if not given and kind != "exit_success":
        text = _first_text(assertion, _PROSE_KEYS.split("|"))
        if text and not kind.startswith("not_"):  # else it may say what must be, or must not
            return stated([text])
        raise left_out(f"{kind}: no known key says what to look for")
    value = next(filter(None, given), None)
    return _MAKERS[kind](value, str(assertion.get("flags") or ""))


def _first_text(assertion: Mapping[str, Any], keys: Iterable[str]) -> str:
    """Return the first value of ``keys`` that is not empty, "" if there is none or not text."""
    value = next((assertion[key] for key in keys if assertion.get(key)), None)
    return value if isinstance(value, str) else ""


def _kind(assertion: Mapping[str, Any]) -> str:
    """Return the normalized type of an assertion, "" if it has none."""
    return _plain(_first_text(assertion, ("type", "kind")))


def _plain(kind: str) -> str:
    """Normalize a type of assertion, and replace a synonym."""
    kind = re.sub("^(output|response|answer|content)_", "", normalize(kind))
    return _SYNONYMS.get(kind, kind)


def _as_python(pattern: str, flags: str) -> str:
    """Return a pattern of Python or JavaScript as one of Python: nothing says which it is."""
    inline = "".join(flag for flag in "imsx" if flag in flags)
    found = (f"(?{inline})" if inline else "") + re.sub(r"\(\?<(?=[A-Za-z])", "(?P<", pattern)
    if problem := pattern_problem(found):
        raise left_out(f"pattern {found[:40]!r} is not a Python regular expression: {problem}")
    return found


_Maker = Callable[[object, str], Sequence[AnyCheck]]


def _literals(*, negate: bool = False, any_of: bool = False) -> _Maker:
    return lambda value, _flags: make.literals(value, negate=negate, any_of=any_of)


def _patterns(*, negate: bool = False, any_of: bool = False) -> _Maker:
    found = partial(make.patterns, negate=negate, any_of=any_of, convert=_as_python)
    return lambda value, flags: found(value, flags=flags)


_TYPES: Mapping[str, _Maker] = {
    "contains contain contains_all contains_phrase icontains icontains_all required_text"
    " includes includes_all": _literals(),
    "not_contains not_contains_any not_contains_phrase not_icontains excludes excludes_all"
    " excludes_any forbidden_text not_includes does_not_contain not_contain": _literals(
        negate=True
    ),
    "contains_any icontains_any includes_any contains_one_of": _literals(any_of=True),
    "regex contains_pattern matches regex_match matches_regex": _patterns(),
    "regex_any matches_any": _patterns(any_of=True),
    "not_regex not_contains_pattern not_matches not_matches_any not_regex_any regex_exclude"
    " regex_excludes not_matches_regex": _patterns(negate=True),
    # Of an agent that comes to its end, as every graded run does: it says something.
    "exit_success": lambda *_: [Regex(pattern=r"\S")],
}
"""Types, the first of which the others stand for, and how their checks are made of a value and the
flags of a pattern."""

_MAKERS = {names.split()[0]: maker for names, maker in _TYPES.items()}
_SYNONYMS = {name: names.split()[0] for names in _TYPES for name in names.split()}
_FILE_EXISTS = frozenset({"file_exists", "file_produced", "file_created", "files_exist"})
_IN_FILE: Mapping[str, str] = {"file_contains": "", "file_not_contains": "not_"}
_VALUE_KEYS = (
    "value|values|phrase|phrases|substring|substrings|string"
    "|strings|pattern|patterns|schema|expected"
)
"""Keys of the text to search for."""
_PROSE_KEYS = (
    "text|description|statement|assertion|expectation|criterion|behavior|rubric|pass_if|check"
)
_SLUG = re.compile(r"[\w.-]*", re.ASCII)
_WORD = re.compile("[!-~]+")
_TYPED_TEXT = re.compile(r"([a-z_-]+):(\S.*)", re.DOTALL)
_ALTERNATIVES = re.compile(r"[^|\s](?:[^|]{0,40}[^|\s])?(?:\|[^|\s](?:[^|]{0,40}[^|\s])?)+")
"""A pattern of alternatives, ``a|b c``, which is no table and no type such as ``str | None``."""
_FORMULA = re.compile(r"[\w.]+( ([<>]=?|[!=]=) [\w.]+)+")

_JUDGED = frozenset({"judge", "llm", "graded", "rubric", "semantic", "quality", "qualitative"})
"""Words in types of assertions whose value is a statement."""

_FEATURES: Mapping[str, str] = {
    "file files artifact artifacts": "a single answer leaves no files",
    "tool tools called": "a single answer calls no tools",
    "command cmd script exit exec shell run": "a single answer runs nothing",
    "trigger triggered skill activates activation": UNCLEAR,
    "max min latency cost budget tokens": make.BUDGET,
}
"""Words in types of assertions that a single answer cannot satisfy, and why."""

_DENIED = re.compile(
    r"(?:(?:the )?(?:answer|agent|assistant|model|response|skill|it) )?"
    r"(?:(?:do|does|must|should|shall|will|is|are|may)(?: not|n't)|never|no|not|avoids?|without)\b",
    re.IGNORECASE,
)


def worded(prefix: str, *, negate: bool = False) -> Reader:
    """Return how texts are read that become statements with a prefix, or are patterns.

    Args:
        prefix: What stands before each.
        negate: Whether an answer must not satisfy them; some deny it themselves.
    """

    def read(text: object) -> Sequence[AnyCheck]:
        if not isinstance(text, str):
            return ()
        if pattern := _alternatives(text.strip()):
            return make.patterns(pattern, negate=negate, convert=_as_python)
        is_stated = negate and _DENIED.match(text)
        return stated([text], "" if is_stated else prefix)

    return reader_of_each(f"“{prefix.strip()} …”, or a pattern `a|b`", read, items_of)


def searched(kind: str) -> Reader:
    """Return how texts are read that are searched for, by a type, or objects with types."""

    def read(part: object) -> Sequence[AnyCheck]:
        if isinstance(part, dict):
            return checks_of(part | {"negate": True} if kind.startswith("not_") else part)
        return checks_of({"type": kind, "value": part} if isinstance(part, str) else part)

    return reader_of_each(f"`{kind}`", read, items_of)
