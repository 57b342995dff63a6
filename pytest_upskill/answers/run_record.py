"""The recorded form of an agent's run: readable, small, and validated like untrusted data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pytest_upskill.checks.files import MAX_BYTES, MAX_FILES, is_safe_name
from pytest_upskill.models import AgentRun

FOLDER = "agent-runs"
"""Folder of run records in the folder of recordings; pruning leaves it alone."""

MAX_RECORD_BYTES = 8 << 20
"""Maximum size: the largest workspace in base64, and as much again for calls and answer."""


class UnsafeRecordError(ValueError):
    """A run record that no run can have left; the message says what it has."""


def pack_run(run: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a run as they are recorded: texts as lines, for readable diffs.

    Args:
        run: The fields of an `AgentRun`.
    """
    files = [
        file if file["binary"] else {**file, "text": file["text"].split("\n")}
        for file in run["changed"]
    ]
    return {**run, "changed": files}


def unpack_run(run: object) -> object:
    """Undo `pack_run`; values of another shape stay as they are, for the validation to report."""
    if not isinstance(run, Mapping) or not isinstance(run.get("changed"), list):
        return run
    return {**run, "changed": [_join_lines(file) for file in run["changed"]]}


def refuse_unsafe(run: AgentRun) -> None:
    """Refuse a record with file names outside the workspace, or with more than one can hold.

    Raises:
        UnsafeRecordError: The record is not one that a run can have left.
    """
    names = [file.name for file in run.changed]
    for name in (*names, *run.deleted):
        if not is_safe_name(name):
            raise UnsafeRecordError("has the name of a file outside the workspace")
    if len(set(names)) != len(names):
        raise UnsafeRecordError("has two files of one name")
    if len(names) > MAX_FILES or len(run.deleted) > MAX_FILES:
        raise UnsafeRecordError(f"has more than {MAX_FILES:,} files")
    try:
        size = sum(len(file.content) for file in run.changed)
    except ValueError:  # no base64
        raise UnsafeRecordError("has a file that cannot be decoded") from None
    if size > MAX_BYTES:
        raise UnsafeRecordError(f"has more than {MAX_BYTES >> 20} MiB of files")


def _join_lines(file: object) -> object:
    if not isinstance(file, Mapping):
        return file
    lines = file.get("text")
    if isinstance(lines, list) and all(isinstance(line, str) for line in lines):
        return {**file, "text": "\n".join(lines)}
    return file
