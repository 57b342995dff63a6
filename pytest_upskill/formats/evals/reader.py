"""``evals.json`` and its kin: every shape of a file, read into the cases it holds."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pytest_upskill.formats.evals.case import NAMES, PROMPTS, READ, read_case
from pytest_upskill.formats.evals.owner import FindOwner, Owner, owner_of
from pytest_upskill.formats.evals.shapes import Entries, asks, find_entries, keys_of_cases
from pytest_upskill.formats.evals.unsupported import TRIGGER_CASE
from pytest_upskill.formats.source.case_ids import lenient_ids
from pytest_upskill.formats.source.json import Document, JsonPath, parse_json, parse_json_lines
from pytest_upskill.formats.source.problems import BadFile, Problem
from pytest_upskill.formats.source.yaml import parse_yaml
from pytest_upskill.skill import Case

_SYNTAX: Mapping[str, Callable[[str], Document]] = {
    ".json": parse_json,
    ".jsonl": parse_json_lines,
    ".yaml": parse_yaml,
    ".yml": parse_yaml,
}

SUFFIXES = frozenset(_SYNTAX)
"""How the name of a file that can be read ends."""

_TELLING = re.compile(
    "assert|avoid|check|contain|criteri|expect|forbid|judge|match|must|preserve|reject|requir"
    "|should|verif"
)
"""What is in a key that says what must hold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evals:
    """What is read of an evals file."""

    cases: tuple[Case, ...]
    owners: tuple[Owner, ...]
    """The skill of each case; empty where no skill is found for any."""
    warnings: tuple[Problem, ...]
    """What was not read and could matter."""


def read_evals(text: str, *, suffix: str, owner: Owner | None, find: FindOwner) -> Evals:
    """Read an evals file of any family.

    An entry that cannot be read costs itself only: it becomes a case that is skipped, and a
    warning.

    Args:
        text: The file's text.
        suffix: ``.json``, ``.jsonl``, ``.yaml`` or ``.yml``.
        owner: The skill that the file belongs to; None where only its cases can tell.
        find: Finds the skill that a case names.

    Raises:
        BadFile: With every problem of a file of which no entry can be read.
    """
    document = _SYNTAX[suffix](text)
    entries = find_entries(document)
    flaws, warnings = _flaws(document, entries)
    names = lenient_ids([_said(value) for _, value in entries])
    # Where nothing asks, the file is for a tool that asks in another way.
    must_ask = any(asks(value) for _, value in entries)
    cases: list[Case] = []
    owners: list[Owner | None] = []
    bad: list[Problem] = []
    for (path, value), name in zip(entries, names, strict=True):
        whose, reason = owner_of(value, owner, find)
        owners.append(whose)
        try:
            case = read_case(
                value, document, path, name=name, owner=whose, flaws=flaws, must_ask=must_ask
            )
        except BadFile as error:
            bad += error.problems
            why = "; ".join(f"{each.where}: {each.what}" for each in error.problems)
            line = document.line(path)
            case = Case(id=name, input="", checks=(), skip=f"cannot be read: {why}", line=line)
        # A question that no skill is for names none: that is what it asks.
        triggers = case.skip is not None and TRIGGER_CASE in case.skip
        cases.append(replace(case, skip=reason) if reason and not triggers else case)
    if bad and all(case.skip and case.skip.startswith("cannot be read") for case in cases):
        raise BadFile(bad)
    warnings += [replace(each, what=f"{each.what} (the case is skipped)") for each in bad]
    warnings += _unread(document, entries) if cases else [Problem(what="holds no cases")]
    any_owner = next(filter(None, owners), None)
    return Evals(
        cases=tuple(cases),
        owners=tuple(each or any_owner for each in owners) if any_owner else (),
        warnings=tuple(warnings),
    )


def holds_cases(text: str, *, suffix: str) -> bool:
    """Tell whether a file of any name holds cases: a question, and what must hold of its answer.

    What has no syntax at all, its reader refuses.
    """
    try:
        document = _SYNTAX[suffix](text)
        entries = find_entries(document)
    except BadFile:
        return False
    return any(
        asks(value) and not READ.isdisjoint(value.keys() - {*PROMPTS, *NAMES, *_COMMON})
        for _, value in entries
    )


_COMMON = frozenset({"context", "files", "messages", "tags", "tools"})
"""Keys of cases that data of other kinds has too."""


def _said(value: object) -> tuple[str, str, Mapping[str, Any]]:
    """List what an entry is named by: its name, its question, and all that it says."""
    said = value if isinstance(value, dict) else {"": value}
    return _first(said, NAMES), _first(said, PROMPTS), said


def _first(value: Mapping[str, Any], keys: Sequence[str]) -> str:
    """Write the first of ``keys`` that holds a word or a number."""
    found = (value[key] for key in keys if isinstance(value.get(key), str | int))
    return next((str(name) for name in found if name != ""), "")


def _flaws(
    document: Document, entries: Entries
) -> tuple[dict[JsonPath, list[Problem]], list[Problem]]:
    """Sort the flaws of a document: those of its cases, by their places, and the others.

    Raises:
        BadFile: A flaw leaves open which cases there are.
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
    """Name the keys, once each, that look like something to check and are none that is known."""
    seen: set[str] = set()
    for path, value in entries:
        for key, part in value.items() if isinstance(value, dict) else ():
            # What the reader adds to a question of a trigger set stands nowhere.
            there = part and (*path, key) in document.places
            if there and key not in READ and key not in seen and _TELLING.search(key):
                seen.add(key)
                yield document.problem((*path, key), "is not read", key=True)
    for key in _around(document):
        yield document.problem((key,), "is not read", key=True)


def _around(document: Document) -> list[str]:
    """List the keys beside the cases that hold more than a word, and look like expectations."""
    value = document.value
    if not isinstance(value, dict) or asks(value):
        return []
    others = value.keys() - keys_of_cases(value)
    telling = [key for key in others if "trigger" in key or _TELLING.search(key)]
    return sorted(key for key in telling if value[key] and isinstance(value[key], dict | list))
