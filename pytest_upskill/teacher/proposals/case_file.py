"""Writing of cases into a ``skill_meta.json``, without touching what is there."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from pytest_upskill.formats.source.json import read_json
from pytest_upskill.teacher.work.encoding import byte_order_mark

Entry = Mapping[str, Any]


def with_cases(content: bytes | None, entries: Sequence[Entry]) -> bytes:
    """Return the content of a case file with further cases at its end.

    Args:
        content: The file as it is, valid for the reader; None if there is none.
        entries: The cases to add.
    """
    if content is None:
        text = json.dumps({"cases": list(entries)}, indent=2, ensure_ascii=False)
        return f"{text}\n".encode()
    text = content.decode("utf-8-sig")
    document = read_json(text)
    value = document.value
    listed = isinstance(value, list)
    key = () if listed else ("cases" if "cases" in value else "tests",)
    start = document.places[key][1]
    _, end = json.JSONDecoder().raw_decode(text, start)
    # What stands before the closing bracket: the last case, and the blanks that indent the bracket.
    head = text[: end - 1].rstrip()
    blank = text[len(head) : end - 1]
    indent = "    " if not listed else "  "
    added = ",".join(f"\n{_indented(entry, indent)}" for entry in entries)
    comma = "" if head.endswith("[") else ","
    if "\r\n" in text:
        added = added.replace("\n", "\r\n")
    return (
        byte_order_mark(content)
        + f"{head}{comma}{added}{blank or chr(10)}{text[end - 1 :]}".encode()
    )


def _indented(entry: Entry, indent: str) -> str:
    lines = json.dumps(entry, indent=2, ensure_ascii=False).split("\n")
    return "\n".join(indent + line for line in lines)
