"""Files as documents, by their formats, and files beside a case that hold a part of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pytest_upskill.cases.source.document import BadFile, Document, Problem
from pytest_upskill.cases.source.files import read_text
from pytest_upskill.cases.source.json import parse_json, parse_json_lines
from pytest_upskill.cases.source.text import parse_csv, parse_markdown
from pytest_upskill.cases.source.yaml import parse_yaml

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
