"""Prose statements of an evals file: find them, and put assertions in their place."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_upskill.formats.evals.shapes import find_entries
from pytest_upskill.formats.skill import Case
from pytest_upskill.formats.source.json import Document, JsonPath
from pytest_upskill.teacher.work.files import byte_order_mark


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """A prose statement and its position in the file."""

    name: str
    """``case-id: statement 2``."""
    text: str
    case: Case
    number: int
    """From 1, in its case."""
    place: JsonPath


def find_statements(
    cases: Sequence[Case], document: Document
) -> tuple[list[Statement], dict[str, str]]:
    """Return the statements that can be replaced, and why each other one cannot, by its name."""
    entries = {document.line(path): path for path, _ in find_entries(document)}
    found, unchanged = list[Statement](), dict[str, str]()
    for case in cases:
        texts = [check.statement for check in case.judge_checks]
        for number, text in enumerate(texts, 1):
            name = f"{case.id}: statement {number}"
            place = _place(document, entries.get(case.line, ()), text)
            if case.skip or case.agent_key:
                unchanged[name] = case.skip or f"'{case.agent_key}' needs an agent"
            elif place is None:
                unchanged[name] = "is not a text in a list of the file"
            else:
                found.append(Statement(name=name, text=text, case=case, number=number, place=place))
    return found, unchanged


def _place(document: Document, entry: JsonPath, text: str) -> JsonPath | None:
    """Return the position of a statement in the entry of its case, None if it is not there."""
    for path in document.offsets:
        if path[: len(entry)] == entry and path and isinstance(path[-1], int):
            value = document.value
            for step in path:
                value = value[step]
            if isinstance(value, str) and value.strip() == text:
                return path
    return None


def with_assertions(
    content: bytes, document: Document, found: Sequence[tuple[Statement, Mapping[str, Any]]]
) -> bytes:
    """Return a file with assertions in place of statements and no other change.

    Args:
        content: The file.
        document: The parsed file.
        found: Statements with their assertions.
    """
    text = content.decode("utf-8-sig")
    decoder = json.JSONDecoder()
    places = [(document.offsets[each.place].value, assertion) for each, assertion in found]
    for at, assertion in sorted(places, key=lambda place: -place[0]):
        _, end = decoder.raw_decode(text, at)
        text = text[:at] + json.dumps(assertion, ensure_ascii=False) + text[end:]
    return byte_order_mark(content) + text.encode()
