"""Which adapter reads a file: by its place, else by its shape.

The same answer hides a file from models and agents; see `hidden_files.py`.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path, PurePath

from pytest_upskill.cases.adapters import (
    evals_json,
    other_tools,
    plugin_eval,
    promptfoo,
    skill_up,
    vally,
    waza,
)
from pytest_upskill.cases.adapters.adapter import Adapter, is_at
from pytest_upskill.cases.adapters.reading import Reading, read_document
from pytest_upskill.cases.source.document import BadFile, Problem
from pytest_upskill.cases.source.formats import PARSERS

ADAPTERS: tuple[Adapter, ...] = (
    promptfoo.ADAPTER,
    waza.ADAPTER,
    vally.ADAPTER,
    plugin_eval.ADAPTER,
    skill_up.ADAPTER,
    other_tools.TESSL,
    other_tools.CALIPER,
    evals_json.PROMPTS_CSV,
    evals_json.TRIGGERS,
    evals_json.ADAPTER,
)
"""All adapters; the first that fits reads a file, so special shapes come before general ones."""


def adapters_at(path: PurePath) -> list[Adapter]:
    """Return the adapters that have a place for a file."""
    name = path.as_posix()
    if not is_at(name, *(place for adapter in ADAPTERS for place in adapter.places)):
        return []  # as of most files
    return [adapter for adapter in ADAPTERS if adapter.is_place(name)]


def is_certain(path: PurePath) -> bool:
    """Return whether only case files have the name of a file."""
    name = path.as_posix()
    return any(adapter.is_certain_place(name) for adapter in adapters_at(path))


def is_folder_of_cases(path: PurePath) -> bool:
    """Return whether the folder of a file is one that a tool has for its case files."""
    places = (place for adapter in ADAPTERS for place in adapter.places if "/" in place)
    return is_at(path.as_posix(), *places)


def is_folder_case(path: PurePath) -> bool:
    """Return whether a file is in the place of a case that is a folder."""
    return any(each.is_folder and each.is_place(path.as_posix()) for each in ADAPTERS)


def read(
    path: Path, text: str, *, suffix: str = "", adapters: Iterable[Adapter] = ()
) -> Reading | None:
    """Read a case file by the first adapter that fits, None if none does.

    Args:
        path: The file.
        text: Its text.
        suffix: Its format, such as ``.json``; "" for that of its name.
        adapters: The adapters to try after those that have a place for it.

    Raises:
        BadFile: It has a syntax error, or a file beside it that belongs to its cases.
    """
    suffix = suffix or path.suffix.lower()
    if suffix not in PARSERS:
        return None
    document = PARSERS[suffix](text)
    placed = adapters_at(path)
    certain = None
    others = (adapter for adapter in adapters if adapter.reads(suffix))
    for adapter in dict.fromkeys((*placed, *others)):
        try:
            beside = adapter.beside(path)
        except BadFile:
            if adapter in placed:
                raise
            beside = {}  # elsewhere, such files may be of another kind
        reading = read_document(adapter, document, beside)
        if reading.fits:
            return reading
        is_empty = not document.value or (
            isinstance(document.value, dict) and [] in document.value.values()
        )
        if adapter.is_certain_place(path.as_posix()) and (reading.entries or is_empty):
            certain = reading
    return certain


def unfit() -> BadFile:
    """Return why no adapter reads a file."""
    tools = ", ".join(adapter.tool for adapter in ADAPTERS)
    shape = '[{"prompt": "…", "assertions": ["…"]}]'
    what = f"contains no cases: write {shape}, or as in the files of {tools} (docs/formats.md)"
    return BadFile([Problem(line=1, column=1, what=what)])
