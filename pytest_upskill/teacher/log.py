"""The history of what a teacher's commands have proved."""

from __future__ import annotations

import os
import platform
from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from pytest_upskill import CASE_FILE
from pytest_upskill.cases.skill import GateRule
from pytest_upskill.figures.cell import Cell
from pytest_upskill.figures.gate import Gate
from pytest_upskill.project.git import revision
from pytest_upskill.project.project import RUNS
from pytest_upskill.report.document import Report, Session
from pytest_upskill.report.history.runs import log_run
from pytest_upskill.teacher.confirmation import Confirmation
from pytest_upskill.teacher.engine import Engine


def log_confirmation(engine: Engine, confirmed: Confirmation, folder: Path, command: str) -> None:
    """Write the confirmation of a skill into the history; say so if that is impossible.

    Args:
        engine: Knows the project and prints messages.
        confirmed: The measurement on held-out cases.
        folder: The folder of the skill.
        command: The command's name.
    """
    state = engine.terms.state
    project = state.parent
    path = Path(os.path.relpath(folder / CASE_FILE, project)).as_posix()
    models = {result.model: result.resolved for result in confirmed.results}
    new, old = confirmed.results[::2], confirmed.results[1::2]
    if old[0].arm == "with_skill":
        old = tuple(replace(result, arm="old_skill") for result in old)
    gates = []
    for label, resolved in models.items():
        trials = tuple(result for result in (*new, *old) if result.model == label)
        cell = Cell(
            path=path,
            skill=new[0].skill,
            model=label,
            resolved=resolved,
            gate=GateRule(),
            planned=len(trials),
            trials=trials,
        )
        gates.append(Gate(cell=cell, outcome="passed", text=cell.name))
    session = Session(
        date=datetime.now(UTC).replace(microsecond=0),
        versions={"pytest-upskill": version("pytest-upskill"), "python": platform.python_version()},
        models=models,
        options={"command": command, "look": confirmed.look},
        sandbox=None,
        complete=True,
        revision=revision(project, [folder]),
    )
    try:
        log_run(Report(sessions=(session,), gates=tuple(gates)), state / RUNS)
    except OSError as error:
        engine.say(f"not in the history: {state / RUNS}: {error.strerror}")
