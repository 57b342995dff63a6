"""From an entry of ``expected`` to its checks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from pytest_upskill.checks import (
    Check,
    Compile,
    Contains,
    ContainsAny,
    Holds,
    JsonSchema,
    NotContains,
    NotRegex,
    Regex,
)
from pytest_upskill.formats.skill_meta_entries import CompileEntry, Expected


def checks_of(expected: Expected, key: str) -> Iterable[Check | Compile]:
    """Make the checks of one entry of ``expected``, one of each thing that must hold."""
    return _MAKERS[key](expected)


def _compile(entry: CompileEntry | None) -> list[Compile]:
    assert entry is not None
    flags = tuple(entry.flags)
    return [Compile(language=entry.language, arch=entry.arch, flags=flags, files=entry.files)]


_MAKERS: Mapping[str, Callable[[Expected], Iterable[Check | Compile]]] = {
    "contains": lambda x: [Contains(text=text) for text in x.contains],
    "not_contains": lambda x: [NotContains(text=text) for text in x.not_contains],
    "contains_any": lambda x: [ContainsAny(texts=tuple(x.contains_any))],
    "regex": lambda x: [Regex(pattern=pattern) for pattern in x.regex],
    "not_regex": lambda x: [NotRegex(pattern=pattern) for pattern in x.not_regex],
    "json_schema": lambda x: [JsonSchema(schema=x.json_schema)],
    "toml": lambda x: [Holds(name="toml", path=path, value=v) for path, v in x.toml.items()],
    "yaml": lambda x: [Holds(name="yaml", path=path, value=v) for path, v in x.yaml.items()],
    "json": lambda x: [Holds(name="json", path=path, value=v) for path, v in x.json_.items()],
    "compile": lambda x: _compile(x.compile),
}
