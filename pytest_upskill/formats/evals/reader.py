"""Reading of ``evals.json`` and similar files, in every known shape, into cases."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pytest_upskill.formats.evals import keys
from pytest_upskill.formats.evals.case import read_case
from pytest_upskill.formats.evals.keys import NAMES, PROMPTS
from pytest_upskill.formats.evals.owner import NAMES_NONE, FindOwner, Owner, owner_of
from pytest_upskill.formats.evals.shapes import Entries, find_entries, has_prompt, keys_of_cases
from pytest_upskill.formats.skill import Case, Trigger
from pytest_upskill.formats.source.case_ids import lenient_ids
from pytest_upskill.formats.source.json import Document, JsonPath, parse_json, parse_json_lines
from pytest_upskill.formats.source.problems import BadFile, Problem
from pytest_upskill.formats.source.yaml import parse_yaml
from pytest_upskill.formats.statement_marks import MARK_KEY

_SYNTAX: Mapping[str, Callable[[str], Document]] = {
    ".json": parse_json,
    ".jsonl": parse_json_lines,
    ".yaml": parse_yaml,
    ".yml": parse_yaml,
}

SUFFIXES = frozenset(_SYNTAX)
"""Suffixes of the files that can be read."""

_READ = {
    *(*PROMPTS, *NAMES, *keys.FEATURES),
    *(*keys.ASSERTIONS, *keys.STATEMENT_PREFIXES, *keys.SEARCH_KEYS),
    *(*keys.NAMING, *keys.TRIGGERS, *keys.SKILLS, *keys.FORBIDDEN, keys.ACCEPTABLE),
    *(MARK_KEY, "ground_truth", "files", "context", "tags"),
}
"""All keys that are read."""

_LEAVE = Trigger(should=False)
"""That a skill should not be chosen, without one that should."""

_TELLING = re.compile(
    "assert|avoid|check|contain|criteri|expect|forbid|judge|match|must|preserve|reject|requir"
    "|should|verif"
)
"""Parts of keys that suggest an expectation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evals:
    """The content of an evals file."""

    cases: tuple[Case, ...]
    owners: tuple[Owner, ...]
    """The skill of each case; empty if no skill is found for any case."""
    warnings: tuple[Problem, ...]
    """Parts that were not read but could matter."""


def read_evals(text: str, *, suffix: str, owner: Owner | None, find: FindOwner) -> Evals:
    """Read an evals file of any known shape.

    An entry that cannot be read becomes a skipped case and a warning.

    Args:
        text: The file's text.
        suffix: ``.json``, ``.jsonl``, ``.yaml`` or ``.yml``.
        owner: The skill that the file belongs to; None if its cases name their skills.
        find: Finds the skill that a case names.

    Raises:
        BadFile: No entry can be read; it lists all problems.
    """
    document = _SYNTAX[suffix](text)
    entries = find_entries(document)
    flaws, warnings = _flaws(document, entries)
    names = lenient_ids([_id_parts(value) for _, value in entries])
    # If no entry has a question, the file is for a tool that gets it from elsewhere.
    must_ask = any(has_prompt(value) for _, value in entries)
    cases: list[Case] = []
    owners: list[Owner | None] = []
    bad: list[Problem] = []
    for (path, value), name in zip(entries, names, strict=True):
        whose, reason = owner_of(value, owner, find)
        try:
            case = read_case(
                value, document, path, name=name, owner=whose, flaws=flaws, must_ask=must_ask
            )
        except BadFile as error:
            bad += error.problems
            why = "; ".join(f"{each.where}: {each.what}" for each in error.problems)
            line = document.line(path)
            case = Case(id=name, input="", checks=(), skip=f"cannot be read: {why}", line=line)
        owners.append(whose)
        cases.append(_without_skill(case, reason) if reason else case)
    if bad and all(case.skip and case.skip.startswith("cannot be read") for case in cases):
        raise BadFile(bad)
    warnings += [replace(each, what=f"{each.what} (the case is skipped)") for each in bad]
    warnings += _unread(document, entries) if cases else [Problem(what="contains no cases")]
    any_owner = next(filter(None, owners), None)
    return Evals(
        cases=tuple(cases),
        owners=tuple(each or any_owner for each in owners) if any_owner else (),
        warnings=tuple(warnings),
    )


def _without_skill(case: Case, reason: str) -> Case:
    """Return a case whose skill is not found, with the reason for it if it cannot run."""
    # A case may name no skill because none should be taken; it is one of any skill here.
    if reason == NAMES_NONE and case.trigger == _LEAVE:
        case = replace(case, trigger=replace(_LEAVE, nothing=True))
    if case.trigger and case.trigger.nothing:
        return case
    return replace(case, skip=reason, trigger=None)


def holds_cases(text: str, *, suffix: str) -> bool:
    """Return whether a text holds cases, that is, a question and an expectation.

    Args:
        text: The file's text; the result is False if its syntax is invalid.
        suffix: As in `read_evals`.
    """
    try:
        document = _SYNTAX[suffix](text)
        entries = find_entries(document)
    except BadFile:
        return False
    return any(
        has_prompt(value) and not _READ.isdisjoint(value.keys() - {*PROMPTS, *NAMES, *_COMMON})
        for _, value in entries
    )


_COMMON = frozenset({"context", "files", "messages", "tags", "tools"})
"""Keys of cases that are common in other data too."""


def _id_parts(value: object) -> tuple[str, str, Mapping[str, Any]]:
    """Return what the id of an entry is made from: its name, its question, and the whole entry."""
    entry = value if isinstance(value, dict) else {"": value}
    return _first(entry, NAMES), _first(entry, PROMPTS), entry


def _first(value: Mapping[str, Any], among: Sequence[str]) -> str:
    """Return the first value of some keys that is a text or a number, "" if there is none."""
    found = (value[key] for key in among if isinstance(value.get(key), str | int))
    return next((str(name) for name in found if name != ""), "")


def _flaws(
    document: Document, entries: Entries
) -> tuple[dict[JsonPath, list[Problem]], list[Problem]]:
    """Return the flaws inside cases, by the path of the case, and the other flaws.

    Raises:
        BadFile: A flaw makes the list of cases ambiguous.
    """
    flaws: dict[JsonPath, list[Problem]] = {}
    others = []
    places = {path for path, _ in entries}
    above = {path[:steps] for path in places for steps in range(len(path))}
    for at, problem in document.flaws:
        place = next((at[:steps] for steps in range(len(at) + 1) if at[:steps] in places), None)
        if place is not None:
            flaws.setdefault(place, []).append(problem)
        elif at in above:
            raise BadFile([problem])
        else:
            others.append(problem)
    return flaws, others


def _unread(document: Document, entries: Entries) -> Iterator[Problem]:
    """Yield a problem for each unknown key that looks like an expectation, once per key."""
    seen: set[str] = set()
    for path, value in entries:
        for key, part in value.items() if isinstance(value, dict) else ():
            # Keys that shapes.py adds to the questions of a trigger set have no place.
            there = part and (*path, key) in document.places
            if there and key not in _READ and key not in seen and _TELLING.search(key):
                seen.add(key)
                yield document.problem((*path, key), "is not read", key=True)
    for key in _keys_beside_cases(document):
        yield document.problem((key,), "is not read", key=True)


def _keys_beside_cases(document: Document) -> list[str]:
    """Return the keys beside the cases that look like expectations and hold objects or lists."""
    value = document.value
    if not isinstance(value, dict) or has_prompt(value):
        return []
    others = value.keys() - keys_of_cases(value)
    telling = [key for key in others if "trigger" in key or _TELLING.search(key)]
    return sorted(key for key in telling if value[key] and isinstance(value[key], dict | list))
