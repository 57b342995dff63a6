"""Files as documents by their formats: JSON, JSON lines, CSV, and Markdown with frontmatter.

YAML is read in `yaml.py`.
"""

import csv
import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import accumulate
from pathlib import Path
from typing import Any

from pytest_upskill.cases.source.document import (
    MAX_DEPTH,
    THOUSANDS,
    TOO_DEEP,
    BadFile,
    Document,
    JsonPath,
    Offsets,
    Problem,
    unusable,
    where_is,
)
from pytest_upskill.cases.source.files import read_text
from pytest_upskill.cases.source.yaml import parse_yaml
from pytest_upskill.project.frontmatter import FRONTMATTER

_MAX_ROWS = 10_000

_MAX_VALUES = 60_000
"""Maximum number of values in a document: each takes up to a kilobyte of memory."""

_STRING = r'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
# In a valid document: an optional key and a value or its opening bracket; or a closing bracket.
_TOKEN = re.compile(
    rf'(?:({_STRING})\s*:\s*)?(?:({_STRING}|[{{\[]|[^\s{{}}\[\],:"]++)|[}}\]])[\s,]*+', re.DOTALL
)

_TRAILING_COMMA = "a comma before the closing bracket: remove it"
_HINTS = {
    r"//|/\*|#": 'JSON has no comments: remove it, or write "$comment": "..." in the object',
    r",\s*[}\]]": _TRAILING_COMMA,
    r"['\u2018-\u201f]": "JSON strings need plain double quotes",
    r"<{7}|={7}|>{7}": "a merge conflict: keep one of the two versions",
    r"\s*\Z": "the document ends too early: a closing bracket is missing",
}
"""Cures, by a pattern of the text at the error."""

_CURES = {
    "Expecting value": "a value is missing here: true, false, null, a number or text in quotes",
    "Expecting ',' delimiter": "a comma is missing before this",
    "Expecting ':' delimiter": "a colon is missing before this",
    "Invalid control character at": 'a line break or tab in a string: write "\\n" or "\\t"',
    "Invalid \\escape": 'a single backslash in a string: write "\\\\"',
    "Unterminated string starting at": "a string without its closing quote",
    "Extra data": "the document ends before this: remove what follows",
}


def read_json(text: str) -> Document:
    """Read a JSON document strictly, without duplicate keys, NaN or invalid characters.

    Raises:
        BadFile: The document has a syntax error or flaws.
    """
    return parse_json(text).sound()


def parse_json(text: str) -> Document:
    """Read a JSON document, and collect its flaws.

    Raises:
        BadFile: It has a syntax error, too many values, or is nested too deeply.
    """
    _refuse_many_values(text)
    offsets: dict[JsonPath, Offsets] = {}
    flaws: list[tuple[JsonPath, Problem]] = []
    document = Document(value=_loads(text), text=text, offsets=offsets, flaws=flaws)
    escapes = "\\u" in text
    for path, at, part in _walk(text):
        earlier = offsets.get(path)
        offsets[path] = at
        # Only a key of the same object: an earlier duplicate of the object has smaller offsets.
        if earlier and earlier.key > offsets[path[:-1]].value:
            first_line, line = (document.line_column(key)[0] for key in (earlier.key, at.key))
            first = f" (first in line {first_line})" if first_line != line else ""
            what = f"duplicate key{first}: remove one"
            flaws.append((path, document.problem(path, what, key=True)))
        if len(path) >= MAX_DEPTH and part in {"{", "["}:
            raise BadFile([Problem.in_text(text, at.value, TOO_DEEP)])
        if part in {"NaN", "Infinity", "-Infinity"}:
            flaws.append((path, document.problem(path, f"JSON has no {part}: write a number")))
        if escapes and (what := _unusable_part(path, part)):
            flaws.append((path, document.problem(path, what, key=True)))
    return document


def parse_json_lines(text: str) -> Document:
    """Read a file with one JSON document per line as a list; blank lines are ignored.

    A line that is not valid JSON is a flaw, and None in the list.

    Raises:
        BadFile: It has too many values.
    """
    _refuse_many_values(text)
    offsets: dict[JsonPath, Offsets] = {(): Offsets(0, 0)}
    values: list[Any] = []
    flaws: list[tuple[JsonPath, Problem]] = []
    start = 0
    for number, line in enumerate(text.split("\n"), start=1):
        case, at_line, start = len(values), start, start + len(line) + 1
        if not line.strip():
            continue
        try:
            document = parse_json(line)
        except BadFile as error:
            broken = [((), problem) for problem in error.problems]
            document = Document(value=None, text="", offsets={(): Offsets(0, 0)}, flaws=broken)
        for path, problem in document.flaws:
            where = where_is((case, *path)) if path else ""
            flaws.append(((case, *path), replace(problem, line=number, where=where)))
        for path, at in document.offsets.items():
            offsets[case, *path] = Offsets(at.key + at_line, at.value + at_line)
        values.append(document.value)
    return Document(value=values, text=text, offsets=offsets, flaws=flaws)


def _refuse_many_values(text: str) -> None:
    if sum(map(text.count, ",[{")) > _MAX_VALUES:
        raise BadFile([Problem(what=f"has more than {_MAX_VALUES:,} values: split it")])


def _loads(text: str) -> Any:
    try:
        return json.loads(text)
    except RecursionError:
        return None  # parse_json() finds the place and raises
    except json.JSONDecodeError as error:
        before = text[: error.pos].rstrip()
        if before.endswith(",") and text[error.pos :].startswith(("]", "}")):
            # Python 3.13 names the comma, earlier versions the bracket after it.
            raise BadFile([Problem.in_text(text, len(before) - 1, _TRAILING_COMMA)]) from None
        what = _syntax_problem(error)
        raise BadFile([Problem(line=error.lineno, column=error.colno, what=what)]) from None
    except ValueError:  # Python's limit on the digits of an integer
        digits = re.search(rf"\d{{{sys.get_int_max_str_digits()}}}", text)
        at = digits.start() if digits else 0
        raise BadFile([Problem.in_text(text, at, THOUSANDS)]) from None


def _syntax_problem(error: json.JSONDecodeError) -> str:
    if not error.doc.strip():
        return "the file is empty"
    for pattern, hint in _HINTS.items():
        if re.compile(pattern).match(error.doc, error.pos):
            return hint
    return _CURES.get(error.msg, f"not JSON: {error.msg[0].lower()}{error.msg[1:]}")


def _walk(text: str) -> Iterator[tuple[JsonPath, Offsets, str]]:
    """Yield path, offsets and first token of each value of a valid document."""
    path: JsonPath = ()
    index = 0  # of the next value in an array
    outer: list[tuple[JsonPath, int]] = []
    for match in _TOKEN.finditer(text):
        key, part = match.groups()
        if part is None:
            path, index = outer.pop()
            continue
        at = key_at = match.start(2)
        here = path
        if key is not None:
            key_at = match.start()
            here = (*path, json.loads(key) if "\\" in key else key[1:-1])
        elif outer:
            here = (*path, index)
            index += 1
        yield here, Offsets(key_at, at), part
        if part in "{[":
            outer.append((path, index))
            path, index = here, 0


def _unusable_part(path: JsonPath, part: str) -> str:
    key = path[-1] if path else ""
    text = json.loads(part) if part.startswith('"') else ""
    return unusable(f"{key}{text}")


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
