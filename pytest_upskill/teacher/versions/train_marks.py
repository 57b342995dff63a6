"""Marking of train cases in a case file, without touching anything else in it."""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import Path

from pytest_upskill import CASE_FILE
from pytest_upskill.formats.source.case_ids import case_ids
from pytest_upskill.formats.source.json import JsonPath, read_json
from pytest_upskill.teacher.work.encoding import byte_order_mark

_BLANK = re.compile(r"\s*")


def with_train_marks(file: Path, content: bytes, train: Collection[str]) -> bytes:
    """Return a case file in which train cases begin with ``"train": true``.

    Args:
        file: Its path; only a ``skill_meta.json`` has such marks, another file stays as it is.
        content: Its content.
        train: Ids of the train cases.
    """
    if file.name != CASE_FILE:
        return content
    text = content.decode("utf-8-sig")
    document = read_json(text)
    value = document.value
    key: JsonPath = ()
    entries = value
    if isinstance(value, dict):
        key = ("cases",) if "cases" in value else ("tests",)
        entries = value[key[0]]
    for index in reversed(range(len(entries))):
        if case_ids(entries)[index] not in train or "train" in entries[index]:
            continue
        at = document.places[(*key, index)][1] + 1
        match = _BLANK.match(text, at)
        blank = match[0] if match else ""
        text = f'{text[:at]}{blank}"train": true,{blank or " "}{text[at + len(blank) :]}'
    return byte_order_mark(content) + text.encode()
