"""Conversion of the entries of ``expected`` into checks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Literal

from pytest_upskill.checks import (
    AnyCheck,
    AtMost,
    Check,
    Compile,
    Contains,
    ContainsAny,
    Custom,
    FileExists,
    InFile,
    Instruction,
    JsonSchema,
    Judge,
    NotContains,
    NotRegex,
    ProcessCheck,
    Regex,
    Run,
    ValueAtPath,
)
from pytest_upskill.formats.skill_meta.schema import (
    PROCESS,
    CompileEntry,
    Expected,
    RunEntry,
    TextChecks,
)

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
    if key in PROCESS:
        return []
    if key in _OF_TEXT:
        return _OF_TEXT[key](expected)
    if key in _MAKERS:
        return _MAKERS[key](expected)
    return [Custom(name=key, value=(expected.model_extra or {})[key])]


def process_checks_of(expected: Expected) -> tuple[ProcessCheck, ...]:
    """Make the checks of what an agent does, which decide nothing."""
    return (
        *((ProcessCheck(name="triggered"),) if expected.triggered else ()),
        *(ProcessCheck(name="read_file", file=file) for file in expected.read_file),
        *(ProcessCheck(name="ran_script", file=file) for file in expected.ran_script),
    )


def _in_files(entries: Mapping[str, TextChecks]) -> list[InFile]:
    """Make the checks of the texts of files."""
    return [
        InFile(file=file, check=check)
        for file, entry in entries.items()
        for key, make in _OF_TEXT.items()
        for check in make(entry)
    ]


def _run(entry: RunEntry | None) -> list[Run]:
    assert entry is not None
    return [Run(language=entry.language, code=entry.code, file=tuple(entry.file))]


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
        file=tuple(entry.file),
    )
    return [check]


_OF_TEXT: Mapping[str, Callable[[TextChecks], Iterable[Check]]] = {
    "contains": lambda x: [Contains(text=text) for text in x.contains],
    "not_contains": lambda x: [NotContains(text=text) for text in x.not_contains],
    "contains_any": lambda x: [ContainsAny(texts=tuple(x.contains_any))] if x.contains_any else [],
    "regex": lambda x: [Regex(pattern=pattern) for pattern in x.regex],
    "not_regex": lambda x: [NotRegex(pattern=pattern) for pattern in x.not_regex],
    "json_schema": lambda x: [JsonSchema(schema=x.json_schema)] if x.json_schema else [],
    "toml": lambda x: [ValueAtPath(name="toml", path=path, value=v) for path, v in x.toml.items()],
    "yaml": lambda x: [ValueAtPath(name="yaml", path=path, value=v) for path, v in x.yaml.items()],
    "json": lambda x: [ValueAtPath(name="json", path=path, value=v) for path, v in x.json_.items()],
}
_MAKERS: Mapping[str, Callable[[Expected], Iterable[AnyCheck]]] = {
    "compile": lambda x: _compile(x.compile),
    "run": lambda x: _run(x.run),
    "judge": lambda x: [Judge(statement=statement) for statement in x.judge],
    "file_exists": lambda x: [FileExists(file=file) for file in x.file_exists],
    "file_contains": lambda x: [
        InFile(name="file_contains", file=file, check=Contains(text=text))
        for file, texts in x.file_contains.items()
        for text in texts
    ],
    "file": lambda x: _in_files(x.file),
}
