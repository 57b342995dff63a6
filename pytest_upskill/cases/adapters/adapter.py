"""What an adapter is: the places of a tool's case files, their shape, and what a case means.

`registry.py` lists the adapters; `reading.py` makes cases of what they return.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, Self

from pydantic import (
    AliasChoices,
    AliasGenerator,
    BaseModel,
    ConfigDict,
    Field,
    PrivateAttr,
    model_validator,
)
from pydantic.alias_generators import to_camel
from pydantic.fields import FieldInfo
from pydantic.functional_validators import ModelWrapValidatorHandler
from pydantic_core import core_schema

from pytest_upskill.cases.adapters.choice import Choice
from pytest_upskill.cases.source.document import JsonPath
from pytest_upskill.checks import AnyCheck
from pytest_upskill.checks.files import ProcessCheck, WorkspaceFile


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A case, or a part of one, as a file describes it; parts are added up."""

    prompt: str = ""
    context: str = ""
    """Text to put before the prompt."""
    name: str = ""
    skills: tuple[str, ...] = ()
    """Names of the skills that it says it belongs to."""
    checks: tuple[AnyCheck, ...] = ()
    reference: tuple[AnyCheck, ...] = ()
    """Statements about the expected answer, which count only where there are no other checks."""
    process: tuple[ProcessCheck, ...] = ()
    choice: Choice | None = None
    implied: Choice | None = None
    """What a kind of case says about the choice, which counts where nothing else says it."""
    inputs: tuple[WorkspaceFile, ...] = ()
    """Files of the question that are written in the case."""
    files: tuple[str | tuple[str, str], ...] = ()
    """Files and folders of the question, relative to the skill or to the case file.

    A pair is the name that a file has for the model, and its path.
    """
    workspace: tuple[WorkspaceFile, ...] = ()
    """What an agent finds besides the files of the question."""
    copies: tuple[tuple[str, str], ...] = ()
    """The same, copied: the name for the agent, "" for its workspace itself, and the source."""
    commands: tuple[str, ...] = ()
    """Commands of the shell in the workspace before an agent starts."""
    git: bool = False
    """Whether the workspace is a git repository."""
    max_turns: int | None = None
    tags: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    """Why some checks are left out; the case is skipped only if no positive one remains."""
    skips: tuple[str, ...] = ()
    """Why something that it expects cannot be measured; each begins with the key that says so."""
    lacks: tuple[str, ...] = ()
    """Why something that it gives cannot be had, such as further turns."""

    def __add__(self, other: Draft) -> Draft:
        return merged([self, other])

    @property
    def expects(self) -> bool:
        """Whether it says what is expected, and not only what is given."""
        chosen = self.choice or self.implied
        unmeasured = self.left_out or self.skips
        return bool(self.checks or self.reference or self.process or chosen or unmeasured)


NOTHING = Draft()

_FIELDS = tuple(each.name for each in fields(Draft))


def merged(parts: Iterable[Draft]) -> Draft:
    """Return the sum of some parts: lists are joined; of other values the first counts."""
    total: dict[str, Any] = {}
    for part in parts:
        for name in _FIELDS:
            value = getattr(part, name)
            if value in (None, "", (), False):
                continue
            first = total.get(name)
            match first:
                case None:
                    total[name] = value
                case tuple():
                    total[name] = first + value
                case Choice():
                    total[name] = first | value
    return Draft(**total)


@dataclass(frozen=True, slots=True)
class Reads:
    """Mark of a field: the function that reads its value as a part of a case.

    The function raises ValueError if the value is a mistake in the file; the message is one line.
    """

    read: Callable[[Any], Draft]
    meaning: str
    """What the docs say about the key."""
    listed: Callable[[Any], list[object]] | None = None
    """For a tuple of drafts: returns the values to read one by one."""

    def __get_pydantic_core_schema__(self, _source: Any, _handler: Any) -> core_schema.CoreSchema:
        one = core_schema.no_info_plain_validator_function(self.read)
        if self.listed is None:
            return one
        return core_schema.no_info_before_validator_function(
            self.listed, core_schema.tuple_variable_schema(one)
        )


def spellings(name: str) -> list[str]:
    """Return how a key is spelled: ``should_trigger``, ``shouldTrigger`` and ``should-trigger``."""
    plain = name.strip("_")
    return list(dict.fromkeys((plain, to_camel(plain), plain.replace("_", "-"))))


def keys(*names: str, default: Any = NOTHING) -> Any:
    """Declare a field that has several keys, of which the first that is given counts."""
    return Field(default, validation_alias=_choices(*names))


def _choices(*names: str) -> AliasChoices:
    return AliasChoices(*(spelling for name in names for spelling in spellings(name)))


class Shape(BaseModel):
    """An object in a case file. Each field reads its key, in every spelling.

    A field whose type is a `Draft`, a list of drafts or another shape is a part of the case. Values
    of other types are for `draft`, which subclasses may extend.
    """

    model_config = ConfigDict(
        alias_generator=AliasGenerator(validation_alias=_choices),
        coerce_numbers_to_str=True,
        extra="allow",
        frozen=True,
    )

    _given: frozenset[str] = PrivateAttr(frozenset())
    """The keys in the file."""

    @model_validator(mode="wrap")
    @classmethod
    def _remember_keys(cls, value: Any, read: ModelWrapValidatorHandler[Self]) -> Self:
        shape = read(value)
        shape._given = frozenset(value) if isinstance(value, dict) else frozenset()  # noqa: SLF001
        return shape

    @classmethod
    def known_keys(cls) -> frozenset[str]:
        """Return all spellings of the keys that the shape reads."""
        choices = (field.validation_alias for field in cls.model_fields.values())
        return frozenset(
            str(key) for each in choices if isinstance(each, AliasChoices) for key in each.choices
        )

    def draft(self) -> Draft:
        """Return what the object says about a case."""
        return merged(self._drafts())

    def _drafts(self) -> Iterator[Draft]:
        for name, field in type(self).model_fields.items():
            value = getattr(self, name)
            for part in value if isinstance(value, tuple | list) else (value,):
                if isinstance(part, Shape):
                    yield part.draft()
                elif isinstance(part, Draft) and (part.left_out or part.skips or part.lacks):
                    yield _with_key(part, self._key(name, field))
                elif isinstance(part, Draft) and part is not NOTHING:
                    yield part

    def _key(self, name: str, field: FieldInfo) -> str:
        """Return the key of a field in the file."""
        assert isinstance(field.validation_alias, AliasChoices)
        return str(next(filter(self._given.__contains__, field.validation_alias.choices), name))


def _with_key(part: Draft, key: str) -> Draft:
    """Return a part whose reasons begin with its key."""
    left_out, skips, lacks = (
        tuple(f"{key}: {reason}" for reason in reasons)
        for reasons in (part.left_out, part.skips, part.lacks)
    )
    return replace(part, left_out=left_out, skips=skips, lacks=lacks)


class Entry(NamedTuple):
    """A case as it is in a document."""

    path: JsonPath
    value: Any
    """Usually an object."""


def listed(*names: str) -> Callable[[Any], list[Entry]]:
    """Return a function that finds cases in the lists of some keys at the top of a file."""

    def find(value: Any) -> list[Entry]:
        found = [name for name in names if isinstance(value, dict) and name in value]
        return [
            Entry((name, index), case)
            for name in found
            if isinstance(value[name], list)
            for index, case in enumerate(value[name])
        ]

    return find


def single(value: Any) -> list[Entry]:
    """Return the whole file as one case."""
    return [Entry((), value)] if isinstance(value, dict) else []


@dataclass(frozen=True, kw_only=True)
class Adapter:
    """How the case files of one tool are read."""

    tool: str
    about: str
    """Where the format is described, and which version was read."""
    places: tuple[str, ...]
    """Patterns of the end of a file's path: ``evals/*.yaml``, ``{a,b}/**/prompt.md``.

    A file that matches one is read if it fits the shape. If the name in a pattern has no ``*``,
    only the tool's case files have that name: then a file that does not fit is an error.
    """
    find: Callable[[Any], Sequence[Entry]]
    """Returns the cases in the value of a document; none if the document is not the tool's."""
    shape: type[Shape]
    """The shape of a case."""
    every: bool = False
    """Whether a file is the tool's only if each case has a question and an expectation, and no
    other key that looks like one; else one such case is enough."""
    skill: Callable[[Any], str] = lambda _value: ""
    """Returns the name of the skill that the whole document names, if any."""
    is_folder: bool = False
    """Whether each case is a folder, whose name is that of the case and of no skill."""
    beside: Callable[[Path], Mapping[str, Any]] = lambda _path: {}
    """Returns keys of the case that other files hold, such as one for each grader."""
    example: str
    """A short file, for the docs."""

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        return pattern_of(self.places)

    @cached_property
    def _certain(self) -> re.Pattern[str]:
        return pattern_of(each for each in self.places if "*" not in each.rpartition("/")[2])

    @cached_property
    def _in_folders(self) -> re.Pattern[str]:
        return pattern_of(each for each in self.places if "/" in each)

    def is_folder_of_cases(self, path: str) -> bool:
        """Return whether the folder of a file is one that the tool has for its files."""
        return self._in_folders.search(path) is not None

    def reads(self, suffix: str) -> bool:
        """Return whether the tool has files of a format, such as ``.json``."""
        return any(suffix[1:] in place for place in self.places)

    def is_place(self, path: str) -> bool:
        """Return whether a file of this path, with slashes, may be the tool's."""
        return self._pattern.search(path) is not None

    def is_certain_place(self, path: str) -> bool:
        """Return whether only the tool's case files have such a path."""
        return self._certain.search(path) is not None


def pattern_of(places: Iterable[str]) -> re.Pattern[str]:
    """Return a pattern of the ends of paths; it matches nothing if there are no places."""
    return re.compile(
        "|".join(rf"(?:^|/){_translated(place)}\Z" for place in places) or r"(?!)",
        re.IGNORECASE,
    )


_TOKENS = {
    "**/": "(?:[^/]+/)*",
    "*": "[^/]*",
    "?": "[^/]",
    "{": "(?:",
    "}": ")",
    ",": "|",
    "#": "[0-9]",
}


def _translated(place: str) -> str:
    parts = re.split(r"(\*\*/|[*{},#])", place)
    return "".join(_TOKENS.get(part, re.escape(part)) for part in parts)
