"""Which adapter reads a file, by its place or else by its keys, and what it reads of it.

The same answer hides a file from models and agents; see `hidden_files.py`.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path, PurePath
from typing import Any

from pytest_upskill.cases.adapters import other_tools, plugin_eval, promptfoo
from pytest_upskill.cases.adapters.adapter import Adapter, Entry, is_at, read_keys, unknown
from pytest_upskill.cases.adapters.draft import IS_OURS, Note, Weight
from pytest_upskill.cases.adapters.evals_json import EVALS_JSON, PROMPTS_CSV, SKILL_AT_TOP, TRIGGERS
from pytest_upskill.cases.skill import GateRule
from pytest_upskill.cases.source.document import BadFile, Document, JsonPath, Problem
from pytest_upskill.cases.source.formats import PARSERS

ADAPTERS: tuple[Adapter, ...] = (
    promptfoo.ADAPTER,
    other_tools.WAZA,
    other_tools.VALLY,
    plugin_eval.ADAPTER,
    other_tools.TESSL,
    other_tools.CALIPER,
    PROMPTS_CSV,
    TRIGGERS,
    EVALS_JSON,
)
"""All adapters; the first that fits reads a file, so special keys come before general ones."""

_COMPARED = re.compile("answer|expect|golden|ground_truth|ideal|oracle|reference|solution|target")
"""How keys of answers, and of files with answers, begin."""

_OWN_FILE_KEYS = frozenset({"expected_references", "expected_script"})
"""Keys of the skill's own files."""

_LIMITS = frozenset({"min_pass_rate", *(limit.name for limit in fields(GateRule))})
"""Keys of a gate, and of defaults, that no other tool has."""

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
        noted = any(draft.notes for draft in drafts) or any(self._unread(depth=0))
        return bool(cases) and all(cases) and not noted

    @property
    def skill(self) -> str:
        """The name of the skill that the whole file names, "" if it names none."""
        names = read_keys(SKILL_AT_TOP, self.document.value).skills
        return names[0] if len(names) == 1 else ""

    @property
    def skills(self) -> list[str]:
        """The names of the skills of its cases: those they belong to, and those they expect."""
        drafts = [each.draft for each in self.entries]
        named = [name for draft in drafts for name in draft.skills]
        chosen = [says.skill for draft in drafts for says in draft.choice if says.is_right]
        return list(dict.fromkeys([*named, *filter(None, chosen)]))

    def flaws(self, *entries: Entry) -> list[Problem]:
        """Return the flaws of the document in some cases; those in none if none is given."""
        cases = [each.path for each in entries or self.entries]
        return [
            problem
            for path, problem in self.document.flaws
            if any(path[: len(case)] == case for case in cases) == bool(entries)
        ]

    def of_own_format(self) -> Iterator[Problem]:
        """Yield limits at the top of the file, which would decide nothing."""
        value = self.document.value
        for key in ("gate", "defaults") if isinstance(value, dict) else ():
            if isinstance(value.get(key), dict) and not _LIMITS.isdisjoint(value[key]):
                yield self.document.problem((key,), IS_OURS, key=True)

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
        for path in self._unread(depth=1):
            if path[:-1] not in first.values():
                first.setdefault(path[-1], path)
        for path in sorted(first.values(), key=lambda path: self.document.offsets[path].key):
            yield self.document.problem(path, "is not read", key=True, is_hint=True)

    def _unread(self, *, depth: int) -> Iterator[JsonPath]:
        for each in self.entries:
            for keys, value in unknown(self.adapter.keys, each.value, depth):
                path = (*each.path, *keys)
                if value and path in self.document.offsets and _EXPECTATION.search(str(path[-1])):
                    yield path


def adapters_at(path: PurePath) -> list[Adapter]:
    """Return the adapters that have a place for a file."""
    name = path.as_posix()
    if not is_at(name, *(place for adapter in ADAPTERS for place in adapter.places)):
        return []  # as of most files
    return [adapter for adapter in ADAPTERS if is_at(name, *adapter.places)]


def is_certain(path: PurePath) -> bool:
    """Return whether only case files have the name of a file."""
    return is_at(path.as_posix(), *(e for adapter in ADAPTERS for e in adapter.certain_places))


def is_folder_of_cases(path: PurePath) -> bool:
    """Return whether the folder of a file is one that a tool has for its case files."""
    places = (place for adapter in ADAPTERS for place in adapter.places if "/" in place)
    return is_at(path.as_posix(), *places)


def read(path: Path, text: str, *, suffix: str = "", anywhere: bool = False) -> Reading | None:
    """Read a case file by the first adapter that fits, None if none does.

    Args:
        path: The file.
        text: Its text.
        suffix: Its format, such as ``.json``; "" for that of its name.
        anywhere: Whether to try the others too, after the adapters that have a place for it.

    Raises:
        BadFile: It has a syntax error, or a file beside it that belongs to its cases.
    """
    suffix = suffix or path.suffix.lower()
    if suffix not in PARSERS:
        return None
    document = PARSERS[suffix](text)
    placed = adapters_at(path)
    certain = None
    tried = ADAPTERS if anywhere else ()
    others = (each for each in tried if any(suffix[1:] in place for place in each.places))
    for adapter in dict.fromkeys((*placed, *others)):
        try:
            beside = adapter.beside(path, document.value)
        except BadFile:
            if adapter in placed:
                raise
            beside = {}  # elsewhere, such files may be of another kind
        reading = read_document(adapter, document, beside)
        if reading.fits:
            return reading
        parts = document.value.values() if isinstance(document.value, dict) else ()
        is_empty = not document.value or [] in parts
        is_placed = is_at(path.as_posix(), *adapter.certain_places)
        is_named = adapter in placed and adapter.tool in path.name
        if (is_placed and is_empty) or (reading.entries and (is_placed or is_named)):
            certain = reading
    return certain


def read_document(adapter: Adapter, document: Document, beside: Mapping[str, Any]) -> Reading:
    """Read the cases of a document by the keys of an adapter; mistakes are collected.

    Args:
        adapter: The adapter.
        document: The document.
        beside: Keys that other files add to each case.
    """
    entries = [
        Entry(
            path,
            value,
            read_keys(adapter.keys, {**value, **beside} if isinstance(value, dict) else value),
        )
        for path, value, _ in adapter.find(document.value)
        if path in document.offsets
    ]
    return Reading(adapter=adapter, document=document, entries=entries)


def is_answer(name: str) -> bool:
    """Return whether a key or a file has the name of an answer."""
    return _COMPARED.match(name) is not None


def compared_files(document: Document) -> Sequence[str]:
    """Return the texts of a document that may name files with which answers are compared."""
    pending: list[tuple[str, Any]] = [("", document.value)]
    found: dict[str, None] = {}
    for key, value in pending:  # which grows
        if isinstance(value, dict):
            pending += value.items()
        elif isinstance(value, list):
            pending += ((key, part) for part in value)
        elif isinstance(value, str) and is_answer(key) and key not in _OWN_FILE_KEYS:
            found[value] = None
    return list(found)


def unfit() -> BadFile:
    """Return why no adapter reads a file."""
    tools = ", ".join(adapter.tool for adapter in ADAPTERS)
    shape = '[{"prompt": "…", "assertions": ["…"]}]'
    what = f"contains no cases: write {shape}, or as in the files of {tools} (docs/formats.md)"
    return BadFile([Problem(line=1, column=1, what=what)])
