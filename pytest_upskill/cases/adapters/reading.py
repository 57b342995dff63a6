"""What an adapter reads of a document, and whether the document is of its tool."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from pytest_upskill.cases.adapters.adapter import Adapter, Entry
from pytest_upskill.cases.adapters.draft import Note, Weight
from pytest_upskill.cases.source.document import Document, JsonPath, Problem

_COMPARED = re.compile("expect|golden|ground_truth|ideal|oracle|reference|solution|target")
"""How keys of answers, and of files with answers, begin."""

_OWN_FILE_KEYS = frozenset({"expected_references", "expected_script"})
"""Keys of the skill's own files."""

_EXPECTATION = re.compile(
    "assert|avoid|check|contain|criteri|expect|forbid|judge|match|must|preserve|reject|requir"
    "|rubric|should|truth|verif"
)
"""Parts of unknown keys that suggest an expectation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A case file as an adapter reads it."""

    adapter: Adapter
    document: Document
    entries: Sequence[Entry]

    @property
    def fits(self) -> bool:
        """Whether the file is of the adapter's tool.

        A case with a wrong value is one of it, as long as it has an expectation and a question, or
        lacks what asks, such as further turns.
        """
        drafts = [each.draft for each in self.entries]
        cases = [bool((e.prompt or e.whys(Weight.LACKS)) and e.expects) for e in drafts]
        if not self.adapter.every:
            return any(cases)
        noted = any(each.draft.notes for each in self.entries) or any(self._unread())
        return bool(cases) and all(cases) and not noted

    @property
    def skill(self) -> str:
        """The name of the skill that the whole file names, "" if it names none."""
        return self.adapter.skill(self.document.value)

    @property
    def skills(self) -> list[str]:
        """The names of the skills of its cases: those they belong to, and those they expect."""
        drafts = [each.draft for each in self.entries]
        named = [name for draft in drafts for name in draft.skills]
        expected = [name for draft in drafts if draft.choice for name in draft.choice.expected]
        return list(dict.fromkeys([*named, *expected]))

    def flaws(self, *entries: Entry) -> list[Problem]:
        """Return the flaws of the document in some cases; those in none if none is given."""
        cases = [each.path for each in entries or self.entries]
        return [
            problem
            for path, problem in self.document.flaws
            if any(path[: len(case)] == case for case in cases) == bool(entries)
        ]

    def mistakes(self, entry: Entry) -> list[Problem]:
        """Return the mistakes in a case, with their places."""
        notes = (note for note in entry.draft.notes if note.is_mistake)
        return [*self.flaws(entry), *(self._problem(entry.path, note) for note in notes)]

    def _problem(self, path: JsonPath, note: Note) -> Problem:
        for step in note.path:  # some are not in the document, such as keys of files beside it
            path = (*path, step) if (*path, step) in self.document.offsets else path
        return self.document.problem(path, note.what)

    def unread(self) -> Iterator[Problem]:
        """Yield a hint for each unknown key that looks like an expectation, once per key."""
        first: dict[str | int, JsonPath] = {}
        for path in (*self._unread(), *self._unread_at_top()):
            first.setdefault(path[-1], path)
        for path in sorted(first.values(), key=lambda path: self.document.offsets[path].key):
            yield self.document.problem(path, "is not read", key=True, is_hint=True)

    def _unread(self) -> Iterator[JsonPath]:
        known = self.adapter.shape.known
        for each in self.entries:
            for key, value in each.value.items() if isinstance(each.value, dict) else ():
                path = (*each.path, key)
                is_expected = value and key not in known and _EXPECTATION.search(key)
                if is_expected and path in self.document.offsets:
                    yield path

    def _unread_at_top(self) -> Iterator[JsonPath]:
        """Yield the keys beside the cases that look like expectations and hold objects or lists."""
        value = self.document.value
        paths = {each.path[:1] for each in self.entries}
        for key, part in value.items() if isinstance(value, dict) and () not in paths else ():
            holds = part and isinstance(part, dict | list) and (key,) not in paths
            if holds and ("trigger" in key or _EXPECTATION.search(key)):
                yield (key,)


def read_document(
    adapter: Adapter, document: Document, beside: Mapping[str, Any] = MappingProxyType({})
) -> Reading:
    """Read the cases of a document by the shape of an adapter; mistakes are collected.

    Args:
        adapter: The adapter.
        document: The document.
        beside: Keys that other files add to each case.
    """
    entries = []
    for path, value, _ in adapter.find(document.value):
        if path in document.offsets:
            given = {**value, **beside} if isinstance(value, dict) else value
            entries.append(Entry(path, value, adapter.shape.read(given)))
    return Reading(adapter=adapter, document=document, entries=entries)


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
