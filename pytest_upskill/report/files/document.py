"""The report as a value: what was run, every cell with its gate, and where it came from."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from pytest_upskill.cells.cell import Cell
from pytest_upskill.cells.gate import Gate
from pytest_upskill.result import RunResult, SkippedCase, Unmeasured

if TYPE_CHECKING:
    pass

ANSWER_LIMIT = 65_536
"""Characters of an answer that a report keeps."""

Option = str | int | float | bool | list[str] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """One pytest run that a report holds results of; a merged report has several."""

    date: datetime
    """When it ended, in UTC."""
    versions: Mapping[str, str]
    """Of pytest-upskill, pytest and Python."""
    models: Mapping[str, str]
    """Label to what it stands for, without credentials."""
    options: Mapping[str, Option]
    """Those that the results depend on."""
    sandbox: str | None
    """What confined the compilers; None where none ran."""
    complete: bool
    """Whether it got to everything: it was not stopped, and every file could be read."""
    unmeasured: tuple[Unmeasured, ...] = ()
    """Of which every trial was skipped."""
    recordings: tuple[str, ...] = ()
    """Of a replay: what the branch changed in its recordings, a line with the sum, then each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Everything that the report files are written from."""

    sessions: tuple[Session, ...]
    gates: tuple[Gate, ...]
    """A decision for each cell, in the order of case files and chosen models."""

    @property
    def cells(self) -> list[Cell]:
        """The cells that the gates are about."""
        return [gate.cell for gate in self.gates]

    @property
    def unmeasured(self) -> list[Unmeasured]:
        """What no session measured."""
        measured = {(cell.path, cell.skill, cell.model) for cell in self.cells}
        cases: defaultdict[tuple[str, str, str], set[SkippedCase]] = defaultdict(set)
        for each in (each for session in self.sessions for each in session.unmeasured):
            cases[each.path, each.skill, each.model].update(each.cases)
        return sorted(
            Unmeasured(path=path, skill=skill, model=model, cases=tuple(sorted(skipped)))
            for (path, skill, model), skipped in cases.items()
            if (path, skill, model) not in measured
        )


def runs_of(cells: Iterable[Cell]) -> Iterator[RunResult]:
    """Go through all valid runs of the cells."""
    return (run for cell in cells for trial in cell.trials for run in trial.runs)


def dollars(runs: Iterable[RunResult]) -> float | None:
    """Add up what answers cost, also when they were recorded; None where a price is unknown."""
    costs = [run.completion.cost_usd for run in runs]
    known = [cost for cost in costs if cost is not None]
    return sum(known) if len(known) == len(costs) else None
