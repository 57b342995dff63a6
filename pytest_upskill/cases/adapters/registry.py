"""Which adapter reads a file: by its place, else by its shape.

The same answer hides a file from models and agents; see `case_files.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from pytest_upskill.cases.adapters import evals_json, trigger_lists, yao
from pytest_upskill.cases.adapters.adapter import Adapter
from pytest_upskill.cases.adapters.reading import Reading, read_document
from pytest_upskill.cases.source.document import Document
from pytest_upskill.cases.source.json import parse_json, parse_json_lines
from pytest_upskill.cases.source.text import parse_csv, parse_markdown
from pytest_upskill.cases.source.yaml import parse_yaml

ADAPTERS: tuple[Adapter, ...] = (yao.ADAPTER, trigger_lists.ADAPTER, evals_json.ADAPTER)
"""All adapters; the first that fits reads a file, so special shapes come before general ones."""

_PARSERS: Mapping[str, Callable[[str], Document]] = {
    ".csv": parse_csv,
    ".json": parse_json,
    ".jsonl": parse_json_lines,
    ".md": parse_markdown,
    ".yaml": parse_yaml,
    ".yml": parse_yaml,
}


def adapters_at(path: Path) -> list[Adapter]:
    """Return the adapters that have a place for a file."""
    name = path.as_posix()
    return [adapter for adapter in ADAPTERS if adapter.is_place(name)]


def is_certain(path: Path) -> bool:
    """Return whether only case files have the name of a file."""
    name = path.as_posix()
    return any(adapter.is_certain_place(name) for adapter in ADAPTERS)


def read(
    path: Path, text: str, *, suffix: str = "", adapters: Iterable[Adapter] = ADAPTERS
) -> Reading | None:
    """Read a case file by the first of some adapters that fits, None if none does.

    Args:
        path: The file.
        text: Its text.
        suffix: Its format, such as ``.json``; "" for that of its name.
        adapters: The adapters to try.

    Raises:
        BadFile: It has a syntax error.
    """
    document = _PARSERS[suffix or path.suffix.lower()](text)
    for adapter in adapters:
        reading = read_document(adapter, document, adapter.beside(path))
        if reading.entries and reading.fits():
            return reading
    return None
