"""``evals.json`` and its kin: every shape of a file, read into the cases it holds."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard

from pytest_upskill.formats.evals_case import NAMES, PROMPTS, READ, ReadFiles, read_case
from pytest_upskill.formats.ids import lenient_ids
from pytest_upskill.formats.positions import Document, JsonPath, read_json, read_json_lines
from pytest_upskill.formats.problems import BadFile, Problem, shown
from pytest_upskill.formats.yaml_positions import read_yaml
from pytest_upskill.skill import Case

_SYNTAX: Mapping[str, Callable[[str], Document]] = {
    ".json": read_json,
    ".jsonl": read_json_lines,
    ".yaml": read_yaml,
    ".yml": read_yaml,
}
_LISTS = ("evals", "cases", "tests", "evaluations", "output_evals", "trigger_evals")
"""Keys that hold the cases of an object."""

_TRIGGERS = {
    "should_trigger": True,
    "should_not_trigger": False,
    "positive": True,
    "negative": False,
}
"""Keys that hold questions of a trigger set, and whether the skill is for them."""

_TELLING = re.compile(
    "assert|check|contain|criteri|expect|forbid|judge|match|must|reject|requir|should|verif"
)
"""What is in a key that says what must hold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evals:
    """What is read of an evals file."""

    cases: tuple[Case, ...]
    warnings: tuple[Problem, ...]
    """What was not read and could matter."""


def read_evals(text: str, *, suffix: str, skills: Collection[str], read_files: ReadFiles) -> Evals:
    """Read an evals file of any family.

    Args:
        text: The file's text.
        suffix: ``.json``, ``.jsonl``, ``.yaml`` or ``.yml``.
        skills: Names of the skill that the file belongs to.
        read_files: Reads the input files of a case.

    Raises:
        BadFile: With every problem of the file.
    """
    document = _SYNTAX[suffix](text)
    entries = _entries(document)
    problems = [
        document.problem(path, f"must be an object, got {shown(value)}")
        for path, value in entries
        if not isinstance(value, dict)
    ]
    sound = [(path, value) for path, value in entries if isinstance(value, dict)]
    names = lenient_ids(
        [(_first(value, NAMES), _first(value, PROMPTS), value) for _, value in sound]
    )
    # Where nothing asks, the file is for a tool that asks in another way.
    must_ask = any(_asks(value) for _, value in sound)
    cases = []
    for (path, value), name in zip(sound, names, strict=True):
        try:
            case = read_case(
                value,
                document,
                path,
                name=name,
                skills=skills,
                read_files=read_files,
                must_ask=must_ask,
            )
        except BadFile as error:
            problems += error.problems
        else:
            cases.append(case)
    if problems:
        raise BadFile(problems)
    warnings = _unread(document, sound) if cases else [Problem(what="holds no cases")]
    return Evals(cases=tuple(cases), warnings=tuple(warnings))


Entries = list[tuple[JsonPath, Any]]
"""Where cases stand, and what stands there."""


def _entries(document: Document) -> Entries:
    """Find the cases: the first shape that the document has tells where."""
    for has_shape, find in _SHAPES:
        if has_shape(document.value):
            return find(document.value, ())
    what = "holds no cases: write a list of them, alone or as 'evals' of an object"
    raise BadFile([document.problem((), what)])


def _listed(value: Sequence[Any], path: JsonPath) -> Entries:
    return [((*path, index), entry) for index, entry in enumerate(value)]


def _collected(value: Mapping[str, Any], path: JsonPath) -> Entries:
    """Find the cases of every list of an object."""
    found: Entries = []
    for key, inner in value.items():
        if key in _TRIGGERS:
            found += _triggers({key: inner}, path)
        elif key in _LISTS and _is_trigger_set(inner):
            found += _triggers(inner, (*path, key))
        elif isinstance(inner, list) and (key in _LISTS or _all_ask(inner)):
            found += _listed(inner, (*path, key))
    return found


def _triggers(value: Mapping[str, Any], path: JsonPath) -> Entries:
    """Find the questions of a trigger set: texts, or cases."""
    return [
        (place, _triggering(entry, triggers))
        for key, triggers in _TRIGGERS.items()
        if isinstance(value.get(key), list)
        for place, entry in _listed(value[key], (*path, key))
    ]


def _triggering(entry: object, triggers: bool) -> object:
    """Write a question of a trigger set as a case, whose ``expected`` can only say the same."""
    if isinstance(entry, str):
        entry = {"query": entry}
    if not isinstance(entry, dict):
        return entry
    return entry | {"should_trigger": triggers, "expected": None}


def _single(value: Mapping[str, Any], path: JsonPath) -> Entries:
    return [(path, value)]


def _has_lists(value: object) -> bool:
    if not isinstance(value, dict):
        return False
    lists = [value.get(key) for key in _LISTS]
    return any(isinstance(part, list) or _is_trigger_set(part) for part in (value, *lists))


def _has_lists_that_ask(value: object) -> bool:
    return isinstance(value, dict) and any(map(_all_ask, value.values()))


def _is_trigger_set(value: object) -> TypeGuard[Mapping[str, Any]]:
    return isinstance(value, dict) and any(isinstance(value.get(key), list) for key in _TRIGGERS)


def _all_ask(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(map(_asks, value))


def _asks(value: object) -> bool:
    return isinstance(value, dict) and any(key in value for key in PROMPTS)


_SHAPES: tuple[tuple[Callable[[Any], bool], Callable[[Any, JsonPath], Entries]], ...] = (
    (lambda value: isinstance(value, list), _listed),
    (_has_lists, _collected),
    (_asks, _single),
    (_has_lists_that_ask, _collected),
)
"""Shapes of a document, and where each has its cases."""


def _first(value: Mapping[str, Any], keys: Sequence[str]) -> str:
    """Write the first of ``keys`` that holds a word or a number."""
    found = (value[key] for key in keys if isinstance(value.get(key), str | int))
    return next((str(name) for name in found if name != ""), "")


def _unread(document: Document, entries: Entries) -> Iterator[Problem]:
    """Name the keys, once each, that look like something to check and are none that is known."""
    seen: set[str] = set()
    for path, value in entries:
        for key, part in value.items():
            if part and key not in READ and key not in seen and _TELLING.search(key):
                seen.add(key)
                yield document.problem((*path, key), "is not read", key=True)
