"""Which adapter reads a file: by its place, else by its shape.

The same answer hides a file from models and agents; see `hidden_files.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path, PurePath
from typing import Any

from pytest_upskill.cases.adapters import (
    evals_json,
    other_tools,
    plugin_eval,
    promptfoo,
    skill_up,
    vally,
    waza,
    yao,
)
from pytest_upskill.cases.adapters.adapter import Adapter, is_at
from pytest_upskill.cases.adapters.documents import PARSERS
from pytest_upskill.cases.adapters.reading import Reading, read_document
from pytest_upskill.cases.source.document import BadFile, Problem

ADAPTERS: tuple[Adapter, ...] = (
    yao.ADAPTER,
    promptfoo.ADAPTER,
    waza.ADAPTER,
    vally.ADAPTER,
    plugin_eval.ADAPTER,
    skill_up.ADAPTER,
    other_tools.TESSL,
    other_tools.CALIPER,
    other_tools.PROMPTS_CSV,
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
    parse = PARSERS.get(suffix or path.suffix.lower())
    if parse is None:
        return None
    document = parse(text)
    placed = adapters_at(path)
    certain, name = None, path.as_posix()
    others = (adapter for adapter in adapters if adapter.reads(suffix or path.suffix.lower()))
    for adapter in dict.fromkeys((*placed, *others)):
        is_placed = adapter in placed
        reading = read_document(adapter, document, _beside(adapter, path, is_placed=is_placed))
        if reading.fits(is_placed=is_placed):
            return reading
        if adapter.is_certain_place(name) and (reading.entries or _is_empty(document.value)):
            certain = reading
    return certain


def _beside(adapter: Adapter, path: Path, *, is_placed: bool) -> Mapping[str, Any]:
    """Return what other files add to a case; anywhere else these may be of another kind."""
    try:
        return adapter.beside(path)
    except BadFile:
        if is_placed:
            raise
        return {}


def _is_empty(value: object) -> bool:
    """Return whether a document has an empty list where cases could be."""
    return not value or (isinstance(value, dict) and [] in value.values())


def unfit() -> BadFile:
    """Return why no adapter reads a file."""
    tools = ", ".join(adapter.tool for adapter in ADAPTERS)
    shape = '[{"prompt": "…", "assertions": ["…"]}]'
    what = f"contains no cases: write {shape}, or as in the files of {tools} (docs/formats.md)"
    return BadFile([Problem(line=1, column=1, what=what)])
