"""The report as JSON, format 1: complete, with a published schema, and readable for merging."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import Field, TypeAdapter, ValidationError
from pydantic_core import SchemaValidator

from pytest_upskill.figures.gate import Gate
from pytest_upskill.figures.presentation import Scalar, scalars
from pytest_upskill.project.files import MAX_STATE_BYTES, read_state
from pytest_upskill.report.document import Report, Session

FORMAT: Final = 1

SCHEMA = files(__package__).joinpath("report.schema.json")
"""The published JSON Schema of a report."""


class ReportError(ValueError):
    """A file is not a valid report, or reports cannot be merged; the message is one line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A gate, with its cell, and the figures of both."""

    gate: Gate
    figures: Mapping[str, Scalar]
    """Computed again when a report is read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A report of pytest-upskill."""

    format: Literal[1]
    sessions: Annotated[tuple[Session, ...], Field(min_length=1)]
    entries: tuple[Entry, ...]


_DOCUMENT = TypeAdapter(Document)

NAMED_BYTES = 64 << 20
"""Maximum size of a report that a command names, which may have all answers."""

_BYTES_PER_VALUE = 20
"""Fewer than in any report that `write_json` wrote."""


def write_json(report: Report) -> str:
    """Return a report as JSON."""
    entries = tuple(Entry(gate=gate, figures=scalars(gate)) for gate in report.gates)
    document = Document(format=FORMAT, sessions=report.sessions, entries=entries)
    return _DOCUMENT.dump_json(document, indent=1).decode() + "\n"


def read_report(file: Path, max_bytes: int = MAX_STATE_BYTES) -> Report:
    """Read the file of a report.

    Args:
        file: The file.
        max_bytes: Its maximum size.

    Raises:
        ReportError: It cannot be read, or is not a report of this format.
    """
    try:
        return read_json(read_state(file, max_bytes, max_values=max_bytes // _BYTES_PER_VALUE))
    except OSError as error:
        raise ReportError(f"{file}: cannot be read: {error.strerror}") from None
    except ReportError as error:
        raise ReportError(f"{file}: {error}") from None


def read_json(text: str | bytes) -> Report:
    """Read a report that `write_json` wrote.

    Raises:
        ReportError: The text is not a report of this format.
    """
    try:
        document: Document = _reader().validate_json(text)
    except ValidationError as error:
        raise ReportError(_one_line(error)) from None
    return Report(sessions=document.sessions, gates=tuple(entry.gate for entry in document.entries))


@cache
def _reader() -> SchemaValidator:
    """Return a validator that stops at the first problem: a million take a gigabyte of memory."""
    return SchemaValidator(_stop_early(_DOCUMENT.core_schema))


def _stop_early(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_stop_early(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    stop = {"fail_fast": True} if schema.get("type") in {"dict", "list", "tuple"} else {}
    return {name: _stop_early(part) for name, part in schema.items()} | stop


def _one_line(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_input=False)[0]
    where = ".".join(map(str, first["loc"])) or "the file"
    what = f"not a report of format {FORMAT} ({where}: {first['msg']})"
    if first["type"] == "json_invalid":
        what = "not valid JSON"
    return f"{what}: name a file that --upskill-json wrote"
