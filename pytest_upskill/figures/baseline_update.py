"""Baselines written after a session, for complete cells only; each outcome is reported."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from pytest_upskill.figures.baseline import (
    Baseline,
    BaselineCase,
    BaselineError,
    baseline_file,
    key_of,
    write_baseline,
)
from pytest_upskill.figures.cell import Cell
from pytest_upskill.figures.comparison import arm_counts
from pytest_upskill.figures.trial_group import TrialGroup
from pytest_upskill.figures.trigger_cell import TriggerCell
from pytest_upskill.trials.result import TrialResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Update:
    """Outcome of the update of one baseline."""

    text: str
    """Complete sentence, one line."""
    refused: bool = False
    """Whether the file could not be written."""


def update_baselines(
    cells: Sequence[Cell | TriggerCell],
    folder: Path,
    *,
    runs: Mapping[str, int],
    what: str = "baseline",
) -> list[Update]:
    """Write the baseline of every complete cell, and return the outcome for each cell.

    Args:
        cells: All cells of the session, of one kind.
        folder: Folder of the baseline files.
        runs: Number of runs of a complete trial, by label of the model.
        what: What is written, in words.
    """
    return [
        _not_written(cell, reason, what)
        if (reason := _incomplete_reason(cell, runs[cell.model]))
        else _write(cell, folder, what)
        for cell in cells
    ]


def baseline_of(cell: Cell | TriggerCell) -> Baseline:
    """Return the baseline of a cell, dated today."""
    pairs: Sequence[tuple[TrialResult, TrialResult | None]] = (
        cell.pairs.measured
        if isinstance(cell, Cell)
        else [(trial, None) for trial in cell.current_trials]
    )
    cases = [
        BaselineCase(
            id=current.case,
            digest=current.prompt_digest,
            grader=current.grader_digest,
            with_skill=arm_counts(current),
            without_skill=arm_counts(without) if without else None,
        )
        for current, without in pairs
    ]
    return Baseline(
        skill=cell.skill,
        model=cell.model,
        case_file=key_of(cell).case_file,
        resolved=cell.resolved,
        served=tuple(cell.served),
        date=datetime.now(UTC).date().isoformat(),
        version=version("pytest-upskill"),
        skill_digest=pairs[0][0].skill_digest,
        cases=tuple(sorted(cases, key=lambda case: case.id)),
    )


def _incomplete_reason(cell: TrialGroup, runs: int) -> str:
    """Return why a cell is too incomplete for a baseline, empty if it is complete."""
    if len(cell.trials) != cell.planned:
        return f"{len(cell.trials)} of {cell.planned} trials ran: run all of them"
    if cell.missing:
        are = "is" if cell.missing == 1 else "are"
        return f"{cell.missing} of its runs {are} missing: run again, recorded answers cost nothing"
    if cell.cut_failures:
        return cell.open_runs
    if any(len(trial.runs) != runs for trial in cell.trials):
        return "it was stopped early: run without --upskill-early-stop"
    return ""


def _write(cell: Cell | TriggerCell, folder: Path, what: str) -> Update:
    baseline = baseline_of(cell)
    file = baseline_file(folder, baseline.case_file, baseline.model)
    try:
        written = write_baseline(file, baseline)
    except BaselineError as error:
        return replace(_not_written(cell, str(error), what), refused=True)
    except OSError as error:
        reason = f"cannot write {file}: {error.strerror}"
        return replace(_not_written(cell, reason, what), refused=True)
    done = "written, commit it" if written else "is up to date"
    return Update(text=f"{what} of {cell.skill} on {cell.model}: {file} {done}")


def _not_written(cell: TrialGroup, reason: str, what: str) -> Update:
    return Update(text=f"no {what} written of {cell.skill} on {cell.model}: {reason}")
