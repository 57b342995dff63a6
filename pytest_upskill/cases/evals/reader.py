"""Reading of ``evals.json`` and similar files, in every known shape, into cases."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pytest_upskill.cases.evals import shapes as keys
from pytest_upskill.cases.evals.case import merge_prompt_object, read_case
from pytest_upskill.cases.evals.owner import NAMES_NONE, FindOwner, Owner, owner_of
from pytest_upskill.cases.evals.shapes import (
    NAME_KEYS,
    PROMPT_KEYS,
    Entry,
    find_entries,
    has_prompt,
    keys_of_cases,
)
from pytest_upskill.cases.evals.triggers import stated_by_type
from pytest_upskill.cases.skill import Case, Trigger
from pytest_upskill.cases.source.case_ids import lenient_ids
from pytest_upskill.cases.source.document import BadFile, Document, JsonPath, Problem
from pytest_upskill.cases.source.json import parse_json, parse_json_lines
from pytest_upskill.cases.source.yaml import parse_yaml
from pytest_upskill.cases.statements import MARK_KEY

_PARSERS: Mapping[str, Callable[[str], Document]] = {
    ".json": parse_json,
    ".jsonl": parse_json_lines,
    ".yaml": parse_yaml,
    ".yml": parse_yaml,
}

_READ_KEYS = frozenset(
    {
        *(*PROMPT_KEYS, *NAME_KEYS, *keys.AGENT_REASONS),
        *(*keys.ASSERTION_KEYS, *keys.STATEMENT_PREFIXES, *keys.SEARCH_KEYS),
        *(*keys.OWNER_KEYS, *keys.TRIGGER_KEYS, *keys.EXPECTED_SKILL_KEYS),
        *(*keys.FORBIDDEN_SKILL_KEYS, keys.ACCEPTABLE_SKILLS_KEY),
        *(MARK_KEY, "ground_truth", "files", "context", "tags"),
    }
)
"""All keys of a case that are read."""

_CASE_KEYS = _READ_KEYS - {
    *(*PROMPT_KEYS, *NAME_KEYS),
    *("context", "files", "messages", "tags", "tools"),
}
"""Keys that few other data than cases have beside a prompt."""

_EXPECTING_KEYS = _CASE_KEYS - {
    *keys.OWNER_KEYS,
    *("cmd", "conversation", "environment", "fixture", "fixtures", "history", "prompt_sequence"),
    *("query_flow", "setup", "steps", "turns", "workspace"),
}
"""Those that say what is expected; the others say what is given."""

_COMPARED = re.compile("expect|golden|ground_truth|ideal|oracle|reference|solution|target")
"""How keys of answers, and of files with answers, begin."""

_OWN_FILE_KEYS = frozenset({"expected_references", "expected_script"})
"""Keys of the skill's own files."""

_UNREADABLE = "cannot be read"

_EXPECTATION = re.compile(
    "assert|avoid|check|contain|criteri|expect|forbid|judge|match|must|preserve|reject|requir"
    "|should|verif"
)
"""Parts of unknown keys that suggest an expectation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evals:
    """The content of an evals file."""

    cases: tuple[Case, ...]
    owners: tuple[Owner, ...]
    """The skill of each case; empty if no skill is found for any case."""
    warnings: tuple[Problem, ...]
    """Parts that were not read but could matter."""


def parse_evals(text: str, *, suffix: str) -> Document:
    """Parse the text of an evals file.

    Args:
        text: The file's text.
        suffix: One of `CASE_SUFFIXES`.

    Raises:
        BadFile: The text has a syntax error.
    """
    return _PARSERS[suffix](text)


def read_evals(document: Document, *, owner: Owner | None, find: FindOwner) -> Evals:
    """Read an evals file of any known shape.

    An entry that cannot be read becomes a skipped case and a warning.

    Args:
        document: The file's content.
        owner: The skill that the file belongs to; None if its cases name their skills.
        find: Finds the skill that a case names.

    Raises:
        BadFile: No entry can be read; it lists all problems.
    """
    entries = find_entries(document)
    flaws, other_flaws = _split_flaws(document, entries)
    names = lenient_ids([_id_parts(entry.value) for entry in entries])
    # If no entry has a prompt, the file is for a tool that gets it from elsewhere.
    requires_prompt = any(has_prompt(entry.value) for entry in entries)
    cases: list[Case] = []
    owners: list[Owner | None] = []
    problems: list[Problem] = []
    for entry, name in zip(entries, names, strict=True):
        case_owner, why_no_owner = owner_of(entry.value, owner, find)
        try:
            case = read_case(
                entry,
                document,
                name=name,
                owner=case_owner,
                flaws=flaws[entry.path],
                requires_prompt=requires_prompt,
            )
        except BadFile as error:
            problems += error.problems
            case = _unreadable_case(name, document.line(entry.path), error.problems)
        cases.append(_without_owner(case, why_no_owner) if why_no_owner else case)
        owners.append(case_owner)
    if problems and all(case.skip and case.skip.startswith(_UNREADABLE) for case in cases):
        raise BadFile(problems)
    warnings = [
        *other_flaws,
        *(replace(each, what=f"{each.what} (the case is skipped)") for each in problems),
        *(_unread_keys(document, entries) if cases else [Problem(what="contains no cases")]),
    ]
    any_owner = next(filter(None, owners), None)
    return Evals(
        cases=tuple(cases),
        owners=tuple(each or any_owner for each in owners) if any_owner else (),
        warnings=tuple(warnings),
    )


def _unreadable_case(name: str, line: int, problems: Sequence[Problem]) -> Case:
    """Return the skipped case that stands for an entry with problems."""
    why = "; ".join(f"{problem.where}: {problem.what}" for problem in problems)
    return Case(id=name, input="", checks=(), skip=f"{_UNREADABLE}: {why}", line=line)


def _without_owner(case: Case, reason: str) -> Case:
    """Return a case whose skill is not found: skipped for that reason, if it cannot run."""
    # A case may name no skill because none should be chosen; it then tests any skill of the file.
    if reason == NAMES_NONE and case.trigger == Trigger(should=False):
        case = replace(case, trigger=Trigger(should=False, nothing=True))
    if case.trigger and case.trigger.nothing:
        return case
    return replace(case, skip=reason, trigger=None)


def holds_cases(text: str, *, suffix: str, is_named: bool) -> bool:
    """Return whether a text holds cases, that is, a prompt and an expectation.

    Args:
        text: The file's text.
        suffix: As in `parse_evals`.
        is_named: Whether the file's name suggests cases; then a key that is for cases is enough,
            such as the further turns of a conversation.

    Raises:
        BadFile: The text has a syntax error.
    """
    document = parse_evals(text, suffix=suffix)
    try:
        entries = find_entries(document)
    except BadFile:
        return False
    objects = (merge_prompt_object(entry.value)[0] for entry in entries if has_prompt(entry.value))
    return any(
        _expects(fields) or (is_named and not _CASE_KEYS.isdisjoint(fields)) for fields in objects
    )


def _expects(fields: Mapping[str, Any]) -> bool:
    """Return whether a case says what is expected."""
    given = _EXPECTING_KEYS.intersection(fields)
    chosen = given.intersection((*keys.TRIGGER_KEYS, *keys.EXPECTED_SKILL_KEYS))
    return bool(chosen or any(fields[key] for key in given) or stated_by_type(fields))


def compared_files(document: Document) -> Sequence[str]:
    """Return the texts of a document that may name files with which answers are compared."""
    pending: list[tuple[str, Any]] = [("", document.value)]
    found: dict[str, None] = {}
    for key, value in pending:  # which grows
        if isinstance(value, dict):
            pending += value.items()
        elif isinstance(value, list):
            pending += ((key, part) for part in value)
        elif isinstance(value, str) and _COMPARED.match(key) and key not in _OWN_FILE_KEYS:
            found[value] = None
    return list(found)


def _id_parts(value: object) -> tuple[str, str, Mapping[str, Any]]:
    """Return what the id of an entry is made from: its name, its prompt, and its content."""
    content = value if isinstance(value, dict) else {"": value}
    return _first_text(content, NAME_KEYS), _first_text(content, PROMPT_KEYS), content


def _first_text(value: Mapping[str, Any], among: Sequence[str]) -> str:
    """Return the first value of some keys that is a text or a number, "" if there is none."""
    values = (value[key] for key in among if isinstance(value.get(key), str | int))
    return next((str(text) for text in values if text != ""), "")


def _split_flaws(
    document: Document, entries: Sequence[Entry]
) -> tuple[Mapping[JsonPath, Sequence[Problem]], Sequence[Problem]]:
    """Return the flaws inside each case, by the path of the case, and the other flaws.

    Raises:
        BadFile: A flaw makes the list of cases ambiguous.
    """
    in_cases: dict[JsonPath, list[Problem]] = {entry.path: [] for entry in entries}
    above_cases = {path[:steps] for path in in_cases for steps in range(len(path))}
    others: list[Problem] = []
    for path, problem in document.flaws:
        starts = (path[:steps] for steps in range(len(path) + 1))
        case = next((start for start in starts if start in in_cases), None)
        if case is not None:
            in_cases[case].append(problem)
        elif path in above_cases:
            raise BadFile([problem])
        else:
            others.append(problem)
    return in_cases, others


def _unread_keys(document: Document, entries: Sequence[Entry]) -> Iterator[Problem]:
    """Yield a problem for each unknown key that looks like an expectation, once per key."""
    seen: set[str] = set()
    for path, value in entries:
        for key, part in value.items() if isinstance(value, dict) else ():
            # shapes.py adds keys to the prompts of a trigger set, which are not in the file.
            is_in_file = (*path, key) in document.offsets
            if key in _READ_KEYS or key in seen or not (part and is_in_file):
                continue
            if _EXPECTATION.search(key):
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
    expecting = [key for key in others if "trigger" in key or _EXPECTATION.search(key)]
    return sorted(key for key in expecting if value[key] and isinstance(value[key], dict | list))
