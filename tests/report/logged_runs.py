"""Write runs into the history, and read them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from pytest_upskill.figures.cell import Cell
from pytest_upskill.project.git import Revision
from pytest_upskill.report.history.runs import Series, log_run, read_history
from pytest_upskill.trials.result import TrialResult
from tests.reporting import report

Change = Callable[[TrialResult], TrialResult]


def log(
    *cells: Cell,
    day: int,
    commit: str = "a" * 40,
    branch: str = "main",
    dirty: bool = False,
) -> None:
    """Write a run of that day of January into the history."""
    whole = report(*cells)
    (session,) = whole.sessions
    session = replace(
        session,
        date=datetime(2026, 1, day, tzinfo=UTC),
        revision=Revision(commit=commit, branch=branch, dirty=dirty),
    )
    log_run(replace(whole, sessions=(session,)), Path(".upskill/runs"))


def changed(cell: Cell, change: Change) -> Cell:
    return replace(cell, trials=tuple(map(change, cell.trials)))


def served(model: str) -> Change:
    def change(trial: TrialResult) -> TrialResult:
        runs = (
            replace(run, completion=replace(run.completion, served_model=model))
            for run in trial.runs
        )
        return replace(trial, runs=tuple(runs))

    return change


def only() -> Series:
    (series,) = read_history(Path(".upskill/runs")).series
    return series
