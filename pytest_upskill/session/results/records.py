"""The results of the trials as reports bring them, and the trials that were skipped."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby

import pytest

from pytest_upskill.trials.result import TrialRecord
from pytest_upskill.trials.trial import TRIGGER_ARMS, Arm

CellKey = tuple[str, str, str, bool]
"""Case file, skill, model, and whether a model chooses among skills."""


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
    skipped_trials: set[tuple[CellKey, str]] = field(default_factory=set)
    """The skipped trials: the cell, and the node id, which is unique in it."""
    unmeasured: int = 0
    """Number of trials that are errors because runs are missing."""

    def add(self, report: pytest.TestReport) -> None:
        """Record what a report says of a trial."""
        record = getattr(report, "upskill", None)
        if record is not None:
            result = record.result
            self.trials[record.path, result.case, result.model, result.arm] = record
            self.unmeasured += report.failed and report.when == "setup"
        if names := getattr(report, "upskill_skipped", None):
            *cell, case = names
            self.skipped[tuple(cell)][case] = _reason(report)
            self.skipped_trials.add((tuple(cell), report.nodeid))

    def by_cell(self, models: Mapping[str, int], *, chooses: bool) -> Iterator[list[TrialRecord]]:
        """Yield the records of each cell, in the order of case files and models.

        Args:
            models: The place of each model, by label.
            chooses: Whether to yield the trials in which a model chose a skill, or the others.
        """
        records = sorted(
            (r for r in self.trials.values() if (r.result.arm in TRIGGER_ARMS) == chooses),
            key=lambda r: (r.path, models[r.result.model], r.index),
        )
        for _, group in groupby(records, key=lambda r: (r.path, r.result.model)):
            yield list(group)


def _reason(report: pytest.TestReport) -> str:
    """Return why a trial was skipped; pytest stores path, line and reason."""
    assert isinstance(report.longrepr, tuple)
    return report.longrepr[2].removeprefix("Skipped: ")
