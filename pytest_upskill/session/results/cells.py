"""The results of the trials as reports bring them, and the cells that they make."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from pytest_upskill.cases.source.problems import BadFile
from pytest_upskill.figures.cell import Cell
from pytest_upskill.figures.trial_group import with_places
from pytest_upskill.figures.trigger_cell import TriggerCell
from pytest_upskill.session.options.settings import Settings
from pytest_upskill.trials.digests import judge_name
from pytest_upskill.trials.result import CellKey, CellLabels, TrialRecord
from pytest_upskill.trials.skipped import SkippedCase, Unmeasured
from pytest_upskill.trials.trial import Arm

TrialKey = tuple[str, str, str, Arm]
"""Case file, case, model and arm."""


@dataclass(slots=True)
class Records:
    """Results of trials, and skipped cases with the reason."""

    trials: dict[TrialKey, TrialRecord] = field(default_factory=dict)
    """If a trial is rerun, the last attempt counts."""
    skipped: defaultdict[CellKey, dict[str, str]] = field(
        default_factory=lambda: defaultdict[CellKey, dict[str, str]](dict)
    )
    """The reason by the id of the case, for each cell."""
    failures: int = 0
    """Number of failed reports of trials and gates."""
    other_tests: int = 0
    """Number of other tests that ran."""

    @property
    def measured(self) -> list[TrialRecord]:
        """The trials in which something was checked."""
        return [record for record in self.trials.values() if record.result.planned]

    def add(self, report: pytest.TestReport) -> None:
        """Record what a report says of a trial."""
        if skipped := getattr(report, "upskill_skipped", None):
            cell_fields, case = skipped
            self.skipped[CellKey(*cell_fields)][case] = _reason(report)
        if not hasattr(report, "upskill"):
            self.other_tests += report.when == "call"
            return
        record = report.upskill
        if record is None:  # a gate, or a trial that could not begin
            self.failures += report.failed and report.when == "call"
            return
        result = record.result
        if report.failed:
            self.failures += result.failed or report.when == "setup"
        elif result.failed:
            record = replace(record, result=replace(result, excused=True))
        self.trials[record.path, result.case, result.model, result.arm] = record


def cells_of(records: Records, settings: Settings, root: Path) -> list[Cell]:
    """Return the cells in the order of case files and chosen models.

    Args:
        records: Results of the session's trials.
        settings: Values of all options.
        root: Folder that the paths of case files are relative to.
    """
    judge = "" if settings.judge is None else judge_name(settings.judge)
    groups = _groups(records, settings, chooses=False)
    cells = [Cell(**fields, judge=judge) for fields in groups]
    return with_places([replace(cell, labels=_labels(cell, root)) for cell in cells])


def trigger_cells_of(records: Records, settings: Settings) -> list[TriggerCell]:
    """Return the trigger cells in the same order."""
    groups = _groups(records, settings, chooses=True)
    return with_places([TriggerCell(**fields) for fields in groups])


def unmeasured_skills(records: Records) -> list[Unmeasured]:
    """Return the skills on models of which every trial was skipped, so that there is no cell."""
    measured = {record.cell_key for record in records.measured}
    return sorted(
        Unmeasured(
            path=key.path,
            skill=key.skill,
            model=key.model,
            cases=tuple(
                SkippedCase(case=case, reason=reason)
                for case, reason in records.skipped[key].items()
            ),
        )
        for key in records.skipped.keys() - measured
    )


def _groups(records: Records, settings: Settings, *, chooses: bool) -> Iterator[dict[str, Any]]:
    """Yield what every kind of cell has, for each cell of one kind.

    Args:
        records: Results of the session's trials.
        settings: Values of all options.
        chooses: Whether to take the trials in which a model chose a skill, or the others.
    """
    model_order = {model.label: index for index, model in enumerate(settings.models)}
    in_order = sorted(
        (record for record in records.trials.values() if record.cell_key.chooses == chooses),
        key=lambda record: (record.path, model_order[record.result.model], record.index),
    )
    for key, group in groupby(in_order, key=lambda record: record.cell_key):
        trials = list(group)
        if len(trials) == trials[0].planned and not any(each.result.planned for each in trials):
            continue
        first = trials[0]
        yield {
            "path": first.path,
            "case_file": settings.in_project(first.path),
            "skill": first.result.skill,
            "model": first.result.model,
            "resolved": first.result.resolved,
            "gate": first.gate,
            "planned": first.planned,
            "ref": first.ref,
            "history": first.history,
            "past_unknown": first.past_unknown,
            "skipped": tuple(sorted(records.skipped.get(key, ()))),
            "trials": tuple(record.result for record in trials),
        }


def _labels(cell: Cell, root: Path) -> CellLabels | None:
    """Return the labels that apply to a cell, None without a labels file."""
    if not any(trial.statements for trial in cell.trials):
        return None
    # Imported here: most skills have no labels.
    from pytest_upskill.cases.judge_labels import labels_beside
    from pytest_upskill.grading.labels import cell_labels

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


def _reason(report: pytest.TestReport) -> str:
    """Return why a trial was skipped; pytest stores path, line and reason."""
    assert isinstance(report.longrepr, tuple)
    return report.longrepr[2].removeprefix("Skipped: ")
