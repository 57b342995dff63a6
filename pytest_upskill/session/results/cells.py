"""The cells of a session, made of the records of its trials."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from pytest_upskill.cells.cell import Cell
from pytest_upskill.cells.same_name import with_places
from pytest_upskill.cells.trigger_cell import TriggerCell
from pytest_upskill.formats.source.problems import BadFile
from pytest_upskill.session.options.settings import Settings
from pytest_upskill.session.results.records import Records
from pytest_upskill.trials.digests import judge_name
from pytest_upskill.trials.result import CellLabels, TrialRecord
from pytest_upskill.trials.skipped import SkippedCase, Unmeasured
from pytest_upskill.trials.trial import TRIGGER_ARMS


def cells_of(records: Records, settings: Settings, root: Path) -> list[Cell]:
    """Return the cells in the order of case files and chosen models.

    Args:
        records: Results of the session's trials.
        settings: Values of all options.
        root: Folder that the paths of case files are relative to.
    """
    judge = "" if settings.judge is None else judge_name(settings.judge)
    cells = [
        Cell(**_fields(group, records, settings), judge=judge)
        for group in records.by_cell(_places(settings), chooses=False)
    ]
    return with_places([replace(cell, labels=_labels(cell, root)) for cell in cells])


def trigger_cells_of(records: Records, settings: Settings) -> list[TriggerCell]:
    """Return the trigger cells in the same order."""
    groups = records.by_cell(_places(settings), chooses=True)
    return with_places([TriggerCell(**_fields(group, records, settings)) for group in groups])


def unmeasured(records: Records) -> list[Unmeasured]:
    """Return the skills on models of which every trial was skipped, so that there is no cell."""
    measured = {
        (record.path, record.result.skill, record.result.model, record.result.arm in TRIGGER_ARMS)
        for record in records.trials.values()
    }
    return sorted(
        Unmeasured(
            path=path,
            skill=skill,
            model=model,
            cases=tuple(
                SkippedCase(case=case, reason=reason)
                for case, reason in records.skipped[path, skill, model, chooses].items()
            ),
        )
        for path, skill, model, chooses in records.skipped.keys() - measured
    )


def _places(settings: Settings) -> dict[str, int]:
    return {model.label: place for place, model in enumerate(settings.models)}


def _fields(group: list[TrialRecord], records: Records, settings: Settings) -> dict[str, Any]:
    """Return what every kind of cell has."""
    first, result = group[0], group[0].result
    key = first.path, result.skill, result.model, result.arm in TRIGGER_ARMS
    return {
        "path": first.path,
        "case_file": settings.in_project(first.path),
        "skill": result.skill,
        "model": result.model,
        "resolved": result.resolved,
        "gate": first.gate,
        "planned": first.planned,
        "ref": first.ref,
        "history": first.history,
        "past_unknown": first.past_unknown,
        "skipped": tuple(sorted(records.skipped.get(key, ()))),
        "trials": tuple(record.result for record in group),
    }


def _labels(cell: Cell, root: Path) -> CellLabels | None:
    """Return the labels that apply to a cell, None without a labels file."""
    if not any(trial.statements for trial in cell.trials):
        return None
    # Imported here: most skills have no labels.
    from pytest_upskill.formats.judge_labels import labels_beside
    from pytest_upskill.grading.calibration import cell_labels

    # Collection has reported a file that cannot be read.
    with suppress(BadFile):
        if file := labels_beside(root / cell.path):
            return cell_labels(
                file,
                cell.trials,
                judge=cell.judge,
                model=cell.model,
                resolved=cell.resolved,
            )
    return None
