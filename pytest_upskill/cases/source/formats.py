"""Files as documents by their formats, of which CSV and Markdown with frontmatter are read here."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import accumulate
from pathlib import Path
from typing import Any

from pytest_upskill.cases.source.document import BadFile, Document, JsonPath, Offsets, Problem
from pytest_upskill.cases.source.files import read_text
from pytest_upskill.cases.source.json import parse_json, parse_json_lines
from pytest_upskill.cases.source.yaml import parse_yaml

_MAX_ROWS = 10_000

FRONTMATTER = re.compile(
    r"---[^\S\n]*\n(.*?)^(?:---|\.\.\.)[^\S\n]*(?:\n|\Z)", re.DOTALL | re.MULTILINE
)
"""Frontmatter in YAML at the start of Markdown."""


def parse_csv(text: str) -> Document:
    """Read a table with a row of headings as a list of objects.

    Raises:
        BadFile: It is no table, or has too many rows.
    """
    lines = text.splitlines(keepends=True)
    starts = [0, *accumulate(map(len, lines))]
    reader = csv.DictReader(lines, strict=True)
    offsets: dict[JsonPath, Offsets] = {(): Offsets(0, 0)}
    rows: list[Any] = []
    line = 1
    try:
        for row in reader:
            at = Offsets(starts[line], starts[line])
            offsets |= {(len(rows),): at} | {(len(rows), str(key)): at for key in row}
            rows.append({str(key): value or "" for key, value in row.items() if key is not None})
            line = reader.line_num
            if len(rows) > _MAX_ROWS:
                raise BadFile([Problem(what=f"has over {_MAX_ROWS:,} rows: split it")])
    except csv.Error as error:
        raise BadFile([Problem(line=line + 1, column=1, what=f"not CSV: {error}")]) from None
    return Document(value=rows, text=text, offsets=offsets)


def parse_markdown(text: str) -> Document:
    """Read Markdown as an object: the keys of its frontmatter, and the rest as ``body``.

    Raises:
        BadFile: The frontmatter has a syntax error, or is no object.
    """
    text = text.replace("\r\n", "\n")
    found = FRONTMATTER.match(text)
    document = Document(value={}, text=text, offsets={(): Offsets(0, 0)})
    if found and found[1].strip():
        # A comment instead of the first line, so that all offsets are those of the file.
        document = parse_yaml("#" + text[1 : found.end(1)])
        if not isinstance(document.value, dict):
            what = "the frontmatter must contain lines such as 'name: …'"
            raise BadFile([Problem(line=2, column=1, what=what)])
    at = found.end() if found else 0
    return replace(
        document,
        value={**document.value, "body": text[at:].strip()},
        text=text,
        offsets={**document.offsets, ("body",): Offsets(at, at)},
    )


PARSERS: Mapping[str, Callable[[str], Document]] = {
    ".csv": parse_csv,
    ".json": parse_json,
    ".jsonl": parse_json_lines,
    ".md": parse_markdown,
    ".yaml": parse_yaml,
    ".yml": parse_yaml,
}


def object_in(path: Path) -> Mapping[str, Any]:
    """Return the object in a file; an empty one if there is no such file.

    Raises:
        BadFile: It is broken, so that a case would be measured without a part of its checks.
    """
    if not path.is_file():
        return {}
    try:
        value = PARSERS[path.suffix](read_text(path)).sound().value
    except BadFile as error:
        raise BadFile(Problem(what=each.at(path.name)) for each in error.problems) from None
    if not isinstance(value, dict):
        raise BadFile([Problem(what=f"{path.name}: must be an object")])
    return value
