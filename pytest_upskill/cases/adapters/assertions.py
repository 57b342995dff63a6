"""Assertions of tools that declare no types of their own: checks by code, or statements."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from pytest_upskill.cases.adapters import make
from pytest_upskill.cases.adapters.adapter import Reader
from pytest_upskill.cases.adapters.choice import UNCLEAR, normalize
from pytest_upskill.cases.adapters.draft import Flaw, Weight, as_list, left_out, misspelled
from pytest_upskill.cases.source.document import shown
from pytest_upskill.checks.judge import Judge
from pytest_upskill.checks.text import Regex, pattern_problem

_SYNONYMS = {
    "contains": "contain contains_all contains_phrase icontains icontains_all includes includes_all"
    " must_contain required required_text",
    "not_contains": "does_not_contain excludes excludes_all excludes_any forbidden forbidden_text"
    " must_not_contain not_contain not_contains_any not_contains_phrase not_icontains not_includes",
    "contains_any": "contains_one_of icontains_any includes_any must_contain_any",
    "regex": "contains_pattern match_regex matches matches_regex regex_match",
    "regex_any": "matches_any",
    "not_regex": "not_contains_pattern not_match_regex not_matches not_matches_any"
    " not_matches_regex not_regex_any regex_exclude regex_excludes",
    "file_exists": "file_created file_produced files_exist",
    "file_contains": "",
    "file_not_contains": "",
}
"""Types that code decides, and others that mean the same."""

_KINDS = {name: kind for kind, names in _SYNONYMS.items() for name in (kind, *names.split())}
_VALUE_KEYS = (
    *("value", "values", "phrase", "phrases", "substring", "substrings", "string", "strings"),
    *("pattern", "patterns", "expected"),
)
"""Keys of the text to search for."""
_PROSE_KEYS = (
    *("text", "description", "statement", "assertion", "expectation", "criterion", "behavior"),
    *("rubric", "pass_if", "check"),
)
_WORD = re.compile("[!-~]+")
_TYPED_TEXT = re.compile(r"([a-z_-]+):(\S.*)", re.DOTALL)
_ALTERNATIVES = re.compile(r"[^|\s](?:[^|]{0,40}[^|\s])?(?:\|[^|\s](?:[^|]{0,40}[^|\s])?)+")
"""A pattern of alternatives, ``a|b c``, which is no table and no type such as ``str | None``."""

_ESCAPES = re.compile(r"\\[sSdDwW][+*?{]|\\[][.(){}^$+*?|]|^\\b|\\b$")
r"""Escapes that a pattern has, and hardly a path such as ``C:\Windows``."""
_WITHOUT_BLANKS = re.compile(r"(?:\\.|\[(?:\\.|[^]\\])+\]|[^\s[\\])+")
r"""A text that has blanks only in classes of characters, as in ``a[ \t]*b``."""
_FEW_WORDS = re.compile(r"[^\s\\.^$*+?{}[\]|()]+(?: [^\s\\.^$*+?{}[\]|()]+){0,2}")

_JUDGED = frozenset({"judge", "llm", "graded", "rubric", "semantic", "quality", "qualitative"})
"""Words in types of assertions whose value is a statement."""

_ACTIVATED = frozenset({"triggered", "activates", "activation"})
_NAME = re.compile(r"[a-z][\w:-]+")
_OF_CHOICE = frozenset({"trigger", "triggered", "skill", "activates", "activation"})
_OF_SEARCH = frozenset({"contain", "contains", "includes", "match", "matches", "pattern", "regex"})
_OF_AGENTS = re.compile(
    "(files?|artifacts?|tools?|called|command|cmd|script|exit|exec|shell|run|max|min|latency|cost"
    "|budget|tokens)"
)
"""Words in types of assertions that a single answer cannot satisfy."""

_DENIED = re.compile(
    r"(?:(?:the )?(?:answer|agent|assistant|model|response|skill|it) )?"
    r"(?:(?:do|does|must|should|shall|will|is|are|may)(?: not|n't)|never|no|not|avoids?|without)\b",
    re.IGNORECASE,
)


def _items(value: object) -> list[Any]:
    """Return assertions as a list: an object maps types to values, or keys to statements."""
    if not isinstance(value, dict) or "type" in value:
        return [] if isinstance(value, bool) else _texts(value)
    return [
        {"type": kind, "value": part, "text": "" if _searches(kind) else f"{kind}: {_joined(part)}"}
        for kind, part in value.items()
    ]


def _searches(kind: str) -> bool:
    """Return whether a type, known or not, is about a text to search for."""
    return not _OF_SEARCH.isdisjoint(normalize(kind).split("_"))


def _joined(value: object) -> str:
    return "; ".join(map(str, as_list(value)))


def _texts(value: object) -> list[Any]:
    """Return the items of a list; beside a pattern, a few plain words are one too."""
    items = as_list(value)
    if not any(isinstance(each, str) and _is_regex(each.strip()) for each in items):
        return items
    return [f"(?i){e}" if isinstance(e, str) and _FEW_WORDS.fullmatch(e) else e for e in items]


def checks_of(assertion: object) -> make.Checks:
    """Make the checks of one assertion, a text or an object."""
    if isinstance(assertion, str):
        return _of_text(assertion.strip())
    if not isinstance(assertion, dict):
        raise Flaw(f"must be text or an object, got {shown(assertion)}")
    given = _text_of(assertion, "type", "kind")
    if kind := _kind(given):
        if _OF_DOTNET.fullmatch(normalize(given)):
            assertion = {"flags": "i", **assertion}
        return _of_kind(assertion, kind)
    by_key = [
        check
        for key, value in assertion.items()
        if _kind(key) in _KINDS and value and isinstance(value, str | list)
        for each in as_list(value if _are_objects(value) else {**assertion, "value": value})
        for check in checks_of({**each, "type": key})
    ]
    if by_key:
        return by_key
    if text := _text_of(assertion, *_PROSE_KEYS, "value"):
        return stated(text)
    is_given = any(assertion.values())
    raise Flaw("has no known key: add 'text'", Weight.LEFT_OUT if is_given else Weight.MISTAKE)


_OF_DOTNET = re.compile("output_(not_)?matches")
"""Types of the validator of dotnet/skills, whose patterns ignore case."""


def _are_objects(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(each, dict) for each in value)


def stated(text: str, prefix: str = "") -> Sequence[Judge]:
    """Make a statement for a judge of a text, if it is not blank."""
    return [Judge(statement=prefix + text.strip())] if text.strip() else []


def _of_text(text: str) -> make.Checks:
    """Make the checks of a text: a statement, or a check such as ``not_contains:TODO``."""
    if match := _TYPED_TEXT.fullmatch(text):
        kind = _kind(match[1])
        if kind in _KINDS or ("_" in kind and _WORD.fullmatch(match[2])):
            return _of_kind({"value": match[2]}, kind)
    if pattern := _pattern_of(text):
        return [Regex(pattern=pattern)]
    return stated(text, "The answer has this: " if _WORD.fullmatch(text) else "")


def _pattern_of(text: str) -> str:
    """Return the pattern that a text such as ``refund|money back`` is, "" for any other text."""
    if re.fullmatch(r"(?:[^|]+\\\|)+[^|]+", text):  # as grep has alternatives
        text = text.replace(r"\|", "|")
    is_alternatives = _ALTERNATIVES.fullmatch(text)
    if not (is_alternatives or _is_regex(text)) or pattern_problem(text):
        return ""
    return make.python_pattern(text, "i" if is_alternatives else "im")


def _is_regex(text: str) -> bool:
    """Return whether a text is unmistakably a pattern: by escapes, both anchors, or a flag."""
    is_escaped = _ESCAPES.search(text) and _WITHOUT_BLANKS.fullmatch(text)
    return bool(is_escaped or re.fullmatch(r"\^.*\$", text) or make.FLAGGED.match(text))


_MODIFIERS = ("negated", "invert", "inverted", "not", "should_match", "polarity", "min_count")
"""Keys that change what an assertion means, each in the tool of its author."""


def _of_kind(assertion: Mapping[str, Any], kind: str) -> make.Checks:
    if modifier := next((key for key in _MODIFIERS if key in assertion), None):
        raise left_out(f"{kind}: {modifier} is not known")
    file = assertion.get("file") or assertion.get("path")
    if kind == "file_exists":
        exists = make.files_gone if make.is_on(assertion.get("negate")) else make.file_exists
        return exists(file or _value(assertion))
    if kind in {"file_contains", "file_not_contains"} and file:
        search = "regex" if "pattern" in assertion else "contains"
        kind = f"not_{search}" if "not" in kind else search
    if kind in _KINDS and not kind.startswith("file"):
        found = _search(assertion, kind)
        return make.in_file(file, found) if file else found
    return _not_by_code(assertion, kind)


def _not_by_code(assertion: Mapping[str, Any], kind: str) -> make.Checks:
    """Make the checks of a type that no code decides: a statement, if the answer can show it."""
    words = set(kind.split("_"))
    if words & _ACTIVATED and _NAME.fullmatch(name := str(_value(assertion))):
        return [Judge(statement=f"The {name} skill is {'not ' * ('not' in words)}activated.")]
    if words & _OF_CHOICE:
        raise left_out(f"{kind}: {UNCLEAR}")
    if kind not in _KINDS and (hint := misspelled(kind, _KINDS)):
        raise Flaw(f"unknown type {shown(kind)}{hint}")
    text = _text_of(assertion, *_PROSE_KEYS, *(["value"] if words & _JUDGED else []))
    if text and not any(map(_OF_AGENTS.fullmatch, words)):
        return stated(text)
    raise left_out(f"{kind}: {make.UNDECIDED}")


def _search(assertion: Mapping[str, Any], kind: str) -> make.Checks:
    """Make the checks of a type that searches for what one of several keys has."""
    bare = kind.removeprefix("not_")
    negate = (bare != kind) != make.is_on(assertion.get("negate"))
    # The text is tried last: beside another key, it may just describe the assertion.
    value = _value(assertion, kind, bare, "text")
    if value is None:
        text = _text_of(assertion, *_PROSE_KEYS)
        if text and not negate:  # else it may say what must be, or must not
            return stated(text)
        raise left_out(f"{kind}: no known key says what to look for")
    any_of = kind.endswith("_any")
    if "regex" not in kind:
        return make.literals(value, negate=negate, any_of=any_of)
    flags = str(assertion.get("flags") or "")
    return make.patterns(value, flags=flags, negate=negate, any_of=any_of)


def _value(assertion: Mapping[str, Any], *others: str) -> object:
    """Return the first value that is not empty; an empty one if there is only that, else None."""
    given = [assertion[key] for key in (*_VALUE_KEYS, *others) if key in assertion]
    return next(filter(None, given), given[0] if given else None)


def _text_of(assertion: Mapping[str, Any], *keys: str) -> str:
    """Return the texts of the first of some keys that has any, "" if there is none."""
    value = next((assertion[key] for key in keys if assertion.get(key)), None)
    return _joined(value) if all(isinstance(each, str) for each in as_list(value)) else ""


def _kind(name: str) -> str:
    """Normalize a type of assertion, and replace a synonym."""
    kind = re.sub("^(output|response|answer|content)_", "", normalize(name))
    return _KINDS.get(kind, kind)


ASSERTIONS = Reader("assertions: texts or objects", checks_of, _items)


def worded(prefix: str, *, negate: bool = False) -> Reader:
    """Return how texts are read that become statements with a prefix, or are patterns.

    Args:
        prefix: What stands before each.
        negate: Whether an answer must not satisfy them; some deny it themselves.
    """

    def read(text: object) -> make.Checks:
        if not isinstance(text, str):
            raise Flaw(f"must be text, got {shown(text)}")
        if pattern := _pattern_of(text.strip()):
            return make.patterns(pattern, negate=negate)
        return stated(text, "" if negate and _DENIED.match(text) else prefix)

    return Reader(f"“{prefix.strip()} …”, or a pattern `a|b`", read, _texts)


def searched(kind: str) -> Reader:
    """Return how texts are read that are searched for, by a type, or objects with types."""

    def read(part: object) -> make.Checks:
        if isinstance(part, dict):
            if kind.endswith("contains"):  # as of the texts beside it, the case is ignored
                part = {"flags": "i", **part}
            return checks_of(part | {"negate": True} if kind.startswith("not_") else part)
        return checks_of({"type": kind, "value": part} if isinstance(part, str) else part)

    return Reader(f"`{kind}`", read, as_list)
