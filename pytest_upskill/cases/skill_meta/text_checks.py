"""Keys for checks: each field declares a key, its JSON Schema and how its checks are made."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from pytest_upskill.cases.skill_meta.values import Patterns, Schema, Text, Texts, Values
from pytest_upskill.checks import (
    Contains,
    ContainsAny,
    JsonSchema,
    NotContains,
    NotRegex,
    Regex,
    ValueAtPath,
)
from pytest_upskill.checks.result import Key


class Entry(BaseModel):
    """An object of the file: unknown keys and values of a wrong type are errors."""

    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        defer_build=True,  # built once, as part of CaseFile
        model_title_generator=lambda model: re.sub(r"\B(?=[A-Z])", " ", model.__name__).lower(),
    )


@dataclass(frozen=True, slots=True)
class Makes:
    """Mark of a field: the function that makes checks of its validated value."""

    checks: Callable[[Any], Iterable[Any]]
    kind: type[Key] = Key
    """What the key is called elsewhere."""


def of(kind: type[Key]) -> Makes:
    """Mark a field whose checks are of one kind."""
    return Makes(kind.of, kind)


def _at_paths(name: Literal["json", "toml", "yaml"]) -> Makes:
    return Makes(
        lambda values: [ValueAtPath(name=name, path=path, value=v) for path, v in values.items()],
        ValueAtPath,
    )


class Checks(Entry):
    """An object of checks, in which every field is marked with `Makes`."""

    def checks_of(self, keys: Iterable[str]) -> Iterator[Any]:
        """Make the checks of some keys; a key that the object does not have makes none."""
        fields = keys_of(type(self))
        for key in keys:
            name, makes = fields[key]
            if name in self.model_fields_set:
                yield from makes.checks(getattr(self, name))


@cache
def keys_of(model: type[Checks]) -> Mapping[str, tuple[str, Makes]]:
    """Return the keys of a model, each with its field and with how its checks are made."""
    return {
        field.alias or name: (name, mark)
        for name, field in model.model_fields.items()
        for mark in field.metadata
        if isinstance(mark, Makes)
    }


class TextChecks(Checks):
    """Checks of a text; every one must hold."""

    contains: Annotated[Texts, of(Contains)] = Field(default_factory=list)
    """Strings that must all be in the answer; case does not matter."""
    not_contains: Annotated[Texts, of(NotContains)] = Field(default_factory=list)
    """Strings that must not be in the answer; case does not matter."""
    contains_any: Annotated[
        list[Text],
        Field(min_length=1),
        of(ContainsAny),
    ] = Field(default_factory=list)
    """Strings of which at least one must be in the answer; case does not matter."""
    regex: Annotated[Patterns, of(Regex)] = Field(default_factory=list)
    """Python regular expressions that must all be found in the answer."""
    not_regex: Annotated[Patterns, of(NotRegex)] = Field(default_factory=list)
    """Python regular expressions that must not be found in the answer."""
    json_schema: Annotated[Schema, of(JsonSchema)] = Field(default_factory=dict)
    """JSON Schema (2020-12) of the answer's JSON block, or its path relative to this file."""
    toml: Annotated[Values, _at_paths("toml")] = Field(default_factory=dict)
    """Values that the answer's TOML must have: path, such as `general.backends`, to value."""
    yaml: Annotated[Values, _at_paths("yaml")] = Field(default_factory=dict)
    """Values that the answer's YAML must have: path, such as `jobs.test.steps[0]`, to value."""
    json_: Annotated[Values, _at_paths("json"), Field(alias="json")] = Field(default_factory=dict)
    """Values that the answer's JSON must have: path, such as `items[0].'a.b'`, to value."""
