"""Conversion of the entries of ``expected`` into checks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Literal

from pytest_upskill.checks import (
    AnyCheck,
    AtMost,
    Compile,
    Contains,
    ContainsAny,
    Custom,
    Instruction,
    JsonSchema,
    Judge,
    NotContains,
    NotRegex,
    Regex,
    Run,
    ValueAtPath,
)
from pytest_upskill.formats.skill_meta.schema import CompileEntry, Expected, RunEntry

_LIMITS: tuple[Literal["max_registers", "max_spill_bytes", "max_shared_bytes"], ...] = (
    "max_registers",
    "max_spill_bytes",
    "max_shared_bytes",
)
_INSTRUCTIONS: tuple[Literal["ptx_contains", "sass_contains"], ...] = (
    "ptx_contains",
    "sass_contains",
)


def checks_of(expected: Expected, key: str) -> Iterable[AnyCheck]:
    """Make the checks of one entry of ``expected``.

    Args:
        expected: The validated object.
        key: The key of the entry, which is built in or claimed by a plugin.
    """
    if key in _MAKERS:
        return _MAKERS[key](expected)
    return [Custom(name=key, value=(expected.model_extra or {})[key])]


def _run(entry: RunEntry | None) -> list[Run]:
    assert entry is not None
    return [Run(language=entry.language, code=entry.code)]


def _compile(entry: CompileEntry | None) -> list[Compile]:
    assert entry is not None
    limits = (
        AtMost(name=name, most=most)
        for name in _LIMITS
        if (most := getattr(entry, name)) is not None
    )
    instructions = (
        Instruction(name=name, text=text) for name in _INSTRUCTIONS for text in getattr(entry, name)
    )
    check = Compile(
        language=entry.language,
        arch=entry.arch,
        flags=tuple(entry.flags),
        files=entry.files,
        headers=tuple(entry.requires),
        host=entry.host,
        requires=(*limits, *instructions),
    )
    return [check]


_MAKERS: Mapping[str, Callable[[Expected], Iterable[AnyCheck]]] = {
    "contains": lambda x: [Contains(text=text) for text in x.contains],
    "not_contains": lambda x: [NotContains(text=text) for text in x.not_contains],
    "contains_any": lambda x: [ContainsAny(texts=tuple(x.contains_any))],
    "regex": lambda x: [Regex(pattern=pattern) for pattern in x.regex],
    "not_regex": lambda x: [NotRegex(pattern=pattern) for pattern in x.not_regex],
    "json_schema": lambda x: [JsonSchema(schema=x.json_schema)],
    "toml": lambda x: [ValueAtPath(name="toml", path=path, value=v) for path, v in x.toml.items()],
    "yaml": lambda x: [ValueAtPath(name="yaml", path=path, value=v) for path, v in x.yaml.items()],
    "json": lambda x: [ValueAtPath(name="json", path=path, value=v) for path, v in x.json_.items()],
    "compile": lambda x: _compile(x.compile),
    "run": lambda x: _run(x.run),
    "judge": lambda x: [Judge(statement=statement) for statement in x.judge],
}
