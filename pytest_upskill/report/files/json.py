"""The report as JSON, format 1: complete, with a published schema, and readable for merging."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeVar

from pydantic import Field, TypeAdapter, ValidationError
from pydantic_core import SchemaValidator

from pytest_upskill.figures.arm import AgentFigures, ArmFigures
from pytest_upskill.figures.cell import Cell, CellVerdict
from pytest_upskill.figures.comparison import Comparison
from pytest_upskill.figures.gate import C, CellGate, Gate, ShownVerdict, TriggerGate
from pytest_upskill.figures.trial_group import Endings
from pytest_upskill.figures.trigger_cell import Confusion, Rate, TriggerCell
from pytest_upskill.project.files import MAX_STATE_BYTES, read_state
from pytest_upskill.report.document import Report, Session
from pytest_upskill.stats import Agreement, Correction, Estimate

FORMAT: Final = 1


class ReportError(ValueError):
    """A file is not a valid report, or reports cannot be merged; the message is one line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeFigures:
    """How far a cell's judge can be trusted; computed again when a report is read."""

    name: str
    calibrated: bool
    reasons: list[str]
    """Why it is not calibrated."""
    tipping_point: float | None
    """Leniency, as a fraction, that would undo an uncalibrated ``helps`` or ``hurts``."""
    corrected: Correction | None
    """The corrected lift; None if the judge is not calibrated."""
    with_skill: Agreement | None
    """How often the judge is right with the skill; None if it is not calibrated."""
    without_skill: Agreement | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """Figures of a cell; computed again when a report is read."""

    verdict: CellVerdict
    lift: Estimate | None
    """Pass rate with the skill minus without, as a fraction."""
    token_ratio: float | None
    """Mean tokens of a run with the skill divided by those without."""
    with_skill: ArmFigures | None
    without_skill: ArmFigures | None
    old_skill: ArmFigures | None
    missing: int
    """Runs without a usable reply."""
    failed_cases: list[str]
    """Cases that failed with the skill, as too few of their runs passed."""
    endings: list[Endings]
    """How the answers of each arm ended."""
    judge: JudgeFigures | None = None
    """What the judge decided; None if it could not change the outcome of a run."""
    agent: AgentFigures | None = None
    """What an agent did in the runs with the skill; None if the model is no agent's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GateDecision:
    """Decision of the gate about a cell."""

    outcome: Literal["passed", "failed", "skipped"]
    text: str
    regressed: bool
    """Whether the cell became worse than the baseline or the git ref."""
    comparison: Comparison | None
    """Comparison with the baseline or the git ref; None for none."""
    misses_data: bool = False
    """Whether missing runs or cut answers prevent a decision."""
    warning: str = ""
    """What to know about the decision; empty for nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LiftDecision(GateDecision):
    """Decision of the gate about a lift."""

    verdict: ShownVerdict
    """Verdict of the figures, or ``regression``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A cell, its figures, and its gate."""

    cell: Cell
    figures: Figures
    gate: LiftDecision


@dataclass(frozen=True, slots=True, kw_only=True)
class TriggerFigures:
    """Figures of a trigger cell; computed again when a report is read."""

    recall: Rate | None
    """Share of the queries that should trigger the skill for which a right one is chosen."""
    false_triggers: Rate | None
    """Share of the other queries for which the skill is chosen."""
    precision: float | None
    """Share of the skill's triggers that are wanted."""
    queries: int
    """Queries with a valid run."""
    missing: int
    """Runs without a usable reply."""
    failed_cases: list[str]
    """Queries that failed, as too few of their runs were right."""
    endings: list[Endings]
    """How the answers of each arm ended."""
    confusions: tuple[Confusion, ...]
    """How often each skill was wanted and taken, in runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TriggerEntry:
    """A trigger cell, its figures, and its gate."""

    cell: TriggerCell
    figures: TriggerFigures
    gate: GateDecision


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A report of pytest-upskill."""

    format: Literal[1]
    sessions: Annotated[tuple[Session, ...], Field(min_length=1)]
    entries: tuple[Entry, ...]
    triggers: tuple[TriggerEntry, ...] = ()
    """How often each skill is chosen; empty without such queries."""


_DOCUMENT = TypeAdapter(Document)

NAMED_BYTES = 64 << 20
"""Maximum size of a report that a command names, which may have all answers."""

_BYTES_PER_VALUE = 20
"""Fewer than in any report that `write_json` wrote."""

T = TypeVar("T", GateDecision, LiftDecision, Figures, JudgeFigures, TriggerFigures)


def write_json(report: Report) -> str:
    """Return a report as JSON."""
    document = Document(
        format=FORMAT,
        sessions=report.sessions,
        entries=tuple(map(_entry, report.gates)),
        triggers=tuple(map(_trigger_entry, report.trigger_gates)),
    )
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
        raise ReportError(f"cannot be read: {error.strerror}") from None


def read_json(text: str | bytes) -> Report:
    """Read a report that `write_json` wrote.

    Raises:
        ReportError: The text is not a report of this format.
    """
    try:
        document: Document = _reader().validate_json(text)
    except ValidationError as error:
        raise ReportError(_one_line(error)) from None
    return Report(
        sessions=document.sessions,
        gates=tuple(_gate(entry.cell, entry.gate) for entry in document.entries),
        trigger_gates=tuple(_gate(entry.cell, entry.gate) for entry in document.triggers),
    )


def _gate(cell: C, decision: GateDecision) -> CellGate[C]:
    return CellGate(
        cell=cell,
        outcome=decision.outcome,
        text=decision.text,
        comparison=decision.comparison,
        misses_data=decision.misses_data,
        warning=decision.warning,
    )


def generate_schema() -> str:
    """Return the JSON Schema of a report, which is published as ``report.schema.json``."""
    schema: dict[str, Any] = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **_DOCUMENT.json_schema(mode="serialization"),
        "title": "Report of pytest-upskill, format 1",
    }
    return json.dumps(schema, indent=1) + "\n"


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


def _entry(gate: Gate) -> Entry:
    judge = gate.cell.judged and _copy_fields(
        JudgeFigures,
        gate.cell.judged,
        name=gate.cell.judged.judge,
        corrected=gate.cell.judged.correction,
    )
    figures = _copy_fields(Figures, gate.cell, judge=judge)
    return Entry(cell=gate.cell, figures=figures, gate=_copy_fields(LiftDecision, gate))


def _trigger_entry(gate: TriggerGate) -> TriggerEntry:
    figures = _copy_fields(TriggerFigures, gate.cell)
    return TriggerEntry(cell=gate.cell, figures=figures, gate=_copy_fields(GateDecision, gate))


def _copy_fields(kind: type[T], source: object, **others: Any) -> T:
    """Return a value whose fields, but for the others, are the attributes of a source."""
    names = {field.name for field in fields(kind)} - others.keys()
    return kind(**{name: getattr(source, name) for name in names}, **others)


def _one_line(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_input=False)[0]
    where = ".".join(map(str, first["loc"])) or "the file"
    return f"not a report of format {FORMAT}: {where}: {first['msg']}"
