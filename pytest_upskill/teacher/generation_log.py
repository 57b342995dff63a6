"""The measurement of a new skill, as the first entry of its history."""

from __future__ import annotations

import os
import platform
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from pytest_upskill import CASE_FILE
from pytest_upskill.cells.cell import Cell
from pytest_upskill.cells.gate import Gate
from pytest_upskill.formats.skill import GateRule
from pytest_upskill.report.document import Report, Session
from pytest_upskill.report.history.log import log_run
from pytest_upskill.repository.project import RUNS
from pytest_upskill.repository.revision import revision
from pytest_upskill.teacher.proof.confirmation import Confirmation
from pytest_upskill.teacher.work.engine import Engine


def log_generation(engine: Engine, confirmed: Confirmation, folder: Path, name: str) -> None:
    """Write the confirmation of a saved skill into the history; say so if that is impossible.

    Args:
        engine: Knows the project and prints messages.
        confirmed: The measurement on held-out cases.
        folder: The saved skill.
        name: Its name.
    """
    state = engine.terms.state
    project = state.parent
    path = Path(os.path.relpath(folder / CASE_FILE, project)).as_posix()
    models = {result.model: result.resolved for result in confirmed.results}
    gates = []
    for label, resolved in models.items():
        trials = tuple(result for result in confirmed.results if result.model == label)
        cell = Cell(
            path=path,
            skill=name,
            model=label,
            resolved=resolved,
            gate=GateRule(),
            planned=len(trials),
            trials=trials,
        )
        gates.append(Gate(cell=cell, outcome="passed", text=f"{cell.name}: {cell.verdict}"))
    session = Session(
        date=datetime.now(UTC).replace(microsecond=0),
        versions={"pytest-upskill": version("pytest-upskill"), "python": platform.python_version()},
        models=models,
        options={"command": "generate", "look": confirmed.look},
        sandbox=None,
        complete=True,
        revision=revision(project, [folder]),
    )
    try:
        log_run(Report(sessions=(session,), gates=tuple(gates)), state / RUNS)
    except OSError as error:
        engine.say(f"not in the history: {state / RUNS}: {error.strerror}")
