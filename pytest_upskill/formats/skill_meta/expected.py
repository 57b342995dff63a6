"""Conversion of the entries of ``expected`` into checks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Literal

from pytest_upskill.checks import (
    AnyCheck,
    AtMost,
    Compile,
    Contains,
    Custom,
    FileExists,
    InFile,
    Instruction,
    Judge,
    ProcessCheck,
    Run,
)
from pytest_upskill.formats.skill_meta.schema import (
    PROCESS,
    CompileEntry,
    Expected,
    RunEntry,
)
from pytest_upskill.formats.skill_meta.text_checks import TextChecks, text_keys

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
    if key in _MAKERS:
        return _MAKERS[key](expected)
    if key in text_keys():
        return expected.checks_of(key)
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
        for key in text_keys()
        for check in entry.checks_of(key)
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
