"""Baselines written after a session, for complete cells only; each outcome is reported."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import TypeVar

from pytest_upskill.cells.baseline import (
    Baseline,
    BaselineCase,
    BaselineError,
    Tally,
    write_baseline,
)
from pytest_upskill.cells.baseline_folder import baseline_file, key_of
from pytest_upskill.cells.cell import Cell
from pytest_upskill.cells.comparison import tally
from pytest_upskill.cells.trial_group import TrialGroup
from pytest_upskill.cells.trigger_cell import TriggerCell
from pytest_upskill.trials.result import TrialResult

G = TypeVar("G", bound=TrialGroup)


@dataclass(frozen=True, slots=True, kw_only=True)
class Update:
    """Outcome of the update of one baseline."""

    text: str
    """Complete sentence, one line."""
    refused: bool = False
    """Whether the file could not be written."""


def update_baselines(
    cells: Sequence[G],
    folder: Path,
    baseline_of: Callable[[G], Baseline],
    *,
    runs: Mapping[str, int],
    what: str = "baseline",
) -> list[Update]:
    """Write the baseline of every complete cell, and return the outcome for each cell.

    Args:
        cells: All cells of the session, of one kind.
        folder: Folder of the baseline files.
        baseline_of: Returns the baseline of such a cell.
        runs: Number of runs of a complete trial, by label of the model.
        what: What is written, in words.
    """
    return [
        _kept(cell, reason, what)
        if (reason := _not_whole(cell, runs[cell.model]))
        else _write(cell, baseline_of(cell), folder, what)
        for cell in cells
    ]


def baseline_of(cell: Cell) -> Baseline:
    """Return the baseline of a cell, dated today."""
    cases = [_case(one, without_skill=tally(other)) for one, other in cell.pairs]
    return _dated(cell, cell.pairs[0][0].skill_digest, cases)


def trigger_baseline_of(cell: TriggerCell) -> Baseline:
    """Return the baseline of a trigger cell, dated today."""
    cases = [_case(trial) for trial in cell.now]
    return _dated(cell, cell.now[0].skill_digest, cases)


def _case(trial: TrialResult, without_skill: Tally | None = None) -> BaselineCase:
    return BaselineCase(
        id=trial.case,
        digest=trial.prompt_digest,
        grader=trial.grader_digest,
        with_skill=tally(trial),
        without_skill=without_skill,
    )


def _dated(cell: TrialGroup, skill_digest: str, cases: Iterable[BaselineCase]) -> Baseline:
    return Baseline(
        skill=cell.skill,
        model=cell.model,
        case_file=key_of(cell).case_file,
        resolved=cell.resolved,
        served=tuple(cell.served),
        date=datetime.now(UTC).date().isoformat(),
        version=version("pytest-upskill"),
        skill_digest=skill_digest,
        cases=tuple(sorted(cases, key=lambda case: case.id)),
    )


def _not_whole(cell: TrialGroup, runs: int) -> str:
    """Return why a cell is too incomplete for a baseline, empty if it is complete."""
    if len(cell.trials) != cell.planned:
        return f"{len(cell.trials)} of {cell.planned} trials ran: run all of them"
    if cell.missing:
        are = "is" if cell.missing == 1 else "are"
        return f"{cell.missing} of its runs {are} missing: run again, recorded answers cost nothing"
    if any(len(trial.runs) != runs for trial in cell.trials):
        return "it was stopped early: run without --upskill-early-stop"
    return ""


def _write(cell: TrialGroup, baseline: Baseline, folder: Path, what: str) -> Update:
    file = baseline_file(folder, baseline.case_file, baseline.model)
    try:
        written = write_baseline(file, baseline)
    except BaselineError as error:
        return replace(_kept(cell, str(error), what), refused=True)
    except OSError as error:
        reason = f"cannot write {file}: {error.strerror}"
        return replace(_kept(cell, reason, what), refused=True)
    done = "written, commit it" if written else "is up to date"
    return Update(text=f"{what} of {cell.skill} on {cell.model}: {file} {done}")


def _kept(cell: TrialGroup, reason: str, what: str) -> Update:
    return Update(text=f"no {what} written of {cell.skill} on {cell.model}: {reason}")
