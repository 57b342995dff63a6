"""What an adapter is: the places of a tool's case files, their keys, and what a case means.

`registry.py` reads files with the adapters, and `to_cases.py` makes cases of what they return.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from pydantic.alias_generators import to_snake

from pytest_upskill.cases.adapters.draft import NOTHING, Draft, Flaw, Note, Weight, merged
from pytest_upskill.cases.source.document import JsonPath, shown
from pytest_upskill.checks import AnyCheck

Part = Draft | Iterable[AnyCheck]
"""A part of a case, which may be just some checks."""


@dataclass(frozen=True, slots=True)
class Reader:
    """How the value of a key is read as a part of a case."""

    meaning: str
    """What the docs say about the key."""
    part_of: Callable[[Any], Part]
    """Reads a value, or an item of it; it raises a `Flaw` if it cannot."""
    items: Callable[[Any], Sequence[Any]] | None = None
    """Returns the items of a value, if each of them is a part of the case; it never fails."""
    reads_empty: bool = False
    """Whether null, an empty text, list or object says something."""

    def read(self, value: Any) -> Draft:
        """Return a value as a part of a case."""
        if not self.reads_empty and value in (None, "", [], {}):
            return NOTHING
        if self.items is None:
            return self._part(value)
        items = self.items(value)
        return merged(*(self._part(item).under(index) for index, item in enumerate(items)))

    def _part(self, value: Any) -> Draft:
        try:
            found = self.part_of(value)
            return found if isinstance(found, Draft) else Draft(checks=tuple(found))
        except Flaw as flaw:
            return Draft(notes=(flaw.note,))


Keys = Mapping[str, "Reader | Keys"]
"""Keys of an object in a case file, each with how its value is read, or with its own keys.

Of ``a|b`` the first key that is given counts; of ``a b`` both count. Each has all spellings.
"""


def read_keys(keys: Keys, value: Any) -> Draft:
    """Return an object as a part of a case."""
    if not isinstance(value, dict):
        return Draft(notes=(Note(f"must be an object, got {shown(value)}", Weight.MISTAKE),))
    given = {spelled(key): key for key in value}
    found = [
        (reader, key)
        for names, reader in keys.items()
        for same in names.split()
        if (key := next((given[name] for name in same.split("|") if name in given), None))
    ]
    return merged(*(_read_key(reader, value[key]).under(key) for reader, key in found))


def _read_key(reader: Reader | Keys, value: Any) -> Draft:
    return reader.read(value) if isinstance(reader, Reader) else read_keys(reader, value)


_split = cache(re.compile("[ |]").split)


def known(keys: Keys) -> Keys:
    """Return how the value of each key is read, by its name alone."""
    return {name: reader for names, reader in keys.items() for name in _split(names)}


def unknown(keys: Keys, value: Any, depth: int) -> Iterator[tuple[JsonPath, Any]]:
    """Yield the keys of an object, and some levels below, that are not read; with their values."""
    names = known(keys)
    for key, part in value.items() if isinstance(value, dict) else ():
        reader = names.get(spelled(key), {})
        if not reader:
            yield (key,), part
        if depth and not isinstance(reader, Reader):
            yield from (((key, *path), e) for path, e in unknown(reader, part, depth - 1))


spelled = cache(to_snake)
"""Returns a key as the keys of adapters are written, such as ``should_trigger``."""


class Entry(NamedTuple):
    """A case in a document."""

    path: JsonPath
    value: Any
    """Usually an object."""
    draft: Draft = NOTHING
    """What an adapter reads of it."""


def entries_at(value: Any, *path: str | int) -> list[Entry]:
    """Return the items of the list at a path of a document; none if there is no list."""
    found = value
    for step in path:
        found = found.get(step) if isinstance(found, dict) else None
    items = found if isinstance(found, list) else ()
    return [Entry((*path, index), item) for index, item in enumerate(items)]


@dataclass(frozen=True, kw_only=True, eq=False)
class Adapter:
    """How the case files of one tool are read."""

    tool: str
    about: str
    """Where the format is described, and which version was read."""
    places: tuple[str, ...]
    """Patterns of the end of a file's path: ``evals/*.yaml``, ``{a,b}/**/prompt.md``.

    ``#`` is a digit.

    A file that matches one is read if it fits the keys. If the name in a pattern has no ``*``,
    only the tool's case files have that name: then a file that does not fit is an error.
    """
    find: Callable[[Any], Sequence[Entry]]
    """Returns the cases in the value of a document; none if the document is not the tool's."""
    keys: Keys
    """How a case is read."""
    every: bool = False
    """Whether a file is the tool's only if each case has a question and an expectation, and no
    other key that looks like one; else one such case is enough."""
    is_folder: bool = False
    """Whether each case is a folder, whose name is that of the case and of no skill."""
    is_single: bool = False
    """Whether each case is a file, as it is also in a folder of its own."""
    beside: Callable[[Path, Any], Mapping[str, Any]] = lambda _path, _value: {}
    """Returns keys of the cases in a file of some value that other files hold, such as graders.

    It raises BadFile if one of them is broken.
    """

    @property
    def certain_places(self) -> Sequence[str]:
        """The places that only case files of the tool have."""
        return [place for place in self.places if "*" not in place.rpartition("/")[2]]

    def suite_of(self, path: Path) -> Path | None:
        """Return the folder whose files, of one case each, are one suite; None of other files.

        It is the nearest with which a place may begin, but not the folder of a case.
        """
        if not ((self.is_single or self.is_folder) and is_at(path.as_posix(), *self.places)):
            return None
        tops = tuple(place.partition("/")[0] for place in self.places)
        nearer = path.parents[1:4] if self.is_folder else ()
        return next(each for each in (*nearer, *path.parents) if is_at(each.as_posix(), *tops))


def is_at(path: str, *places: str) -> bool:
    """Return whether a path ends as one of some places says."""
    return pattern_of(places).search(path) is not None


_TOKENS = {"**/": "(?:[^/]+/)*", "*": "[^/]*", "{": "(?:", "}": ")", ",": "|", "#": "[0-9]"}


@cache
def pattern_of(places: tuple[str, ...]) -> re.Pattern[str]:
    """Return a pattern of the ends of paths; it matches nothing if there are no places."""
    split = ([*re.split(r"(\*\*/|[*{},#])", place)] for place in places)
    ends = ("".join(_TOKENS.get(part, re.escape(part)) for part in parts) for parts in split)
    return re.compile("|".join(rf"(?:^|/){end}\Z" for end in ends) or r"(?!)", re.IGNORECASE)
