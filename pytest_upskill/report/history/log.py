"""Writing of a run into the history."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from pytest_upskill.checks import CheckResult
from pytest_upskill.figures.trial_group import TrialGroup
from pytest_upskill.models import Completion
from pytest_upskill.project.files import write_file
from pytest_upskill.report.document import Report
from pytest_upskill.report.files.json import write_json
from pytest_upskill.trials.result import RunResult, TrialResult

Group = TypeVar("Group", bound=TrialGroup)

_NOT_KEPT = "(the history keeps no answers)"


def log_run(report: Report, folder: Path) -> list[Path]:
    """Write a report without answers into a folder, and return the path of the file.

    Its name is the time of the run and a digest of the content, so that the histories of several
    machines and branches can be put into one folder.

    Args:
        report: Report of one session.
        folder: Folder of the history; it is created if it does not exist.

    Raises:
        OSError: The file cannot be written.
    """
    text = write_json(without_answers(report)).encode()
    date = report.sessions[-1].date
    digest = hashlib.sha256(text).hexdigest()[:8]
    file = folder / f"{date:%Y%m%dT%H%M%SZ}-{digest}.json"
    write_file(file, text, mode=0o644)
    return [file]


def without_answers(report: Report) -> Report:
    """Return a report without the texts of models and without what quotes them.

    Figures and results stay the same.
    """
    gates = (replace(gate, cell=_cell(gate.cell)) for gate in report.gates)
    triggers = (replace(gate, cell=_cell(gate.cell)) for gate in report.trigger_gates)
    return replace(report, gates=tuple(gates), trigger_gates=tuple(triggers))


def _cell(cell: Group) -> Group:
    return replace(cell, trials=tuple(map(_trial, cell.trials)))


def _trial(trial: TrialResult) -> TrialResult:
    return replace(trial, runs=tuple(map(_run, trial.runs)))


def _run(run: RunResult) -> RunResult:
    judgement = run.judgement
    return replace(
        run,
        completion=_completion(run.completion),
        judgement=None if judgement is None else _completion(judgement),
        checks=tuple(map(_check, run.checks)),
        process=tuple(map(_check, run.process)),
        left_out=0,
    )


def _completion(completion: Completion) -> Completion:
    agent_run = completion.agent_run
    # An empty answer stays empty: it is a miss.
    return replace(
        completion,
        text=_NOT_KEPT if completion.text.strip() else "",
        reasoning=_NOT_KEPT if completion.reasoning.strip() else "",
        tool_calls=(),
        assistant_blocks=(),
        request_id=None,
        agent_run=agent_run and replace(agent_run, changed=(), deleted=(), read=(), calls=()),
    )


def _check(check: CheckResult) -> CheckResult:
    return replace(check, message=check.name, detail="")
