"""The report as JSON, format 1: complete, with a published schema, and readable for merging."""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib.resources import files
from typing import Annotated, Any, Final, Literal

from pydantic import Field, TypeAdapter, ValidationError

from pytest_upskill.cells.agent import AgentFigures
from pytest_upskill.cells.arm import ArmFigures
from pytest_upskill.cells.cell import Cell, CellVerdict
from pytest_upskill.cells.comparison import Comparison
from pytest_upskill.cells.gate import Gate, ShownVerdict
from pytest_upskill.cells.judged import Judged
from pytest_upskill.report.document import Report, Session
from pytest_upskill.report.files.triggers import TriggerEntry, trigger_entry, trigger_gate_of
from pytest_upskill.stats import Agreement, Correction, Estimate, TokenRatio

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
    token_ratio: TokenRatio | None
    with_skill: ArmFigures | None
    without_skill: ArmFigures | None
    old_skill: ArmFigures | None
    missing: int
    """Runs without a usable reply."""
    judge: JudgeFigures | None = None
    """What the judge decided; None if it could not change the outcome of a run."""
    agent: AgentFigures | None = None
    """What an agent did in the runs with the skill; None if the model is no agent's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """Decision of the gate about a cell."""

    outcome: Literal["passed", "failed", "skipped"]
    verdict: ShownVerdict
    """Verdict of the figures, or ``regression``."""
    text: str
    comparison: Comparison | None
    """Comparison with the baseline or the git ref; None for none."""
    warning: str = ""
    """What to know about a decision that was made nevertheless; empty for nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A cell, its figures, and its gate."""

    cell: Cell
    figures: Figures
    gate: Decision


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A report of pytest-upskill."""

    format: Literal[1]
    sessions: Annotated[tuple[Session, ...], Field(min_length=1)]
    entries: tuple[Entry, ...]
    triggers: tuple[TriggerEntry, ...] = ()
    """How often each skill is chosen; empty without such queries."""


_DOCUMENT = TypeAdapter(Document)


def write_json(report: Report) -> str:
    """Return a report as JSON."""
    document = Document(
        format=FORMAT,
        sessions=report.sessions,
        entries=tuple(map(_entry, report.gates)),
        triggers=tuple(map(trigger_entry, report.trigger_gates)),
    )
    return _DOCUMENT.dump_json(document, indent=1).decode() + "\n"


def read_json(text: str | bytes) -> Report:
    """Read a report that `write_json` wrote.

    Raises:
        ReportError: The text is not a report of this format.
    """
    try:
        document = _DOCUMENT.validate_json(text)
    except ValidationError as error:
        raise ReportError(_one_line(error)) from None
    gates = (
        Gate(
            cell=entry.cell,
            outcome=entry.gate.outcome,
            text=entry.gate.text,
            comparison=entry.gate.comparison,
            warning=entry.gate.warning,
        )
        for entry in document.entries
    )
    return Report(
        sessions=document.sessions,
        gates=tuple(gates),
        trigger_gates=tuple(map(trigger_gate_of, document.triggers)),
    )


def generate_schema() -> str:
    """Return the JSON Schema of a report, which is published as ``report.schema.json``."""
    schema: dict[str, Any] = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **_DOCUMENT.json_schema(mode="serialization"),
        "title": "Report of pytest-upskill, format 1",
    }
    return json.dumps(schema, indent=1) + "\n"


def published_schema() -> str:
    """Return the schema that is part of this package."""
    return files("pytest_upskill.report.files").joinpath("report.schema.json").read_text("utf-8")


def _entry(gate: Gate) -> Entry:
    cell = gate.cell
    figures = Figures(
        verdict=cell.verdict,
        lift=cell.lift,
        token_ratio=cell.token_ratio,
        with_skill=cell.with_skill,
        without_skill=cell.without_skill,
        old_skill=cell.old_skill,
        agent=cell.agent,
        missing=cell.missing,
        judge=_judge(cell.judged) if cell.judged else None,
    )
    decision = Decision(
        outcome=gate.outcome,
        verdict=gate.verdict,
        text=gate.text,
        comparison=gate.comparison,
        warning=gate.warning,
    )
    return Entry(cell=cell, figures=figures, gate=decision)


def _judge(judged: Judged) -> JudgeFigures:
    arms = (judged.agreement(with_skill=each) for each in (True, False))
    with_skill, without_skill = arms if judged.calibrated else (None, None)
    return JudgeFigures(
        name=judged.judge,
        calibrated=judged.calibrated,
        reasons=judged.reasons,
        tipping_point=judged.tipping_point,
        corrected=judged.correction,
        with_skill=with_skill,
        without_skill=without_skill,
    )


def _one_line(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_input=False)[0]
    where = ".".join(map(str, first["loc"])) or "the file"
    return f"not a report of format {FORMAT}: {where}: {first['msg']}"
