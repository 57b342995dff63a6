"""The history as points: what each run measured of each skill on each model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Generic, TypeVar

from pytest_upskill.figures.cell import Cell
from pytest_upskill.figures.gate import CellGate
from pytest_upskill.figures.trigger_cell import TriggerCell
from pytest_upskill.project.git import Revision
from pytest_upskill.report.files.json import ReportError, read_report

Group = TypeVar("Group", bound=Cell | TriggerCell)


@dataclass(frozen=True, slots=True, kw_only=True)
class Point(Generic[Group]):
    """One cell of one run."""

    date: datetime
    """End of the run, in UTC."""
    revision: Revision | None
    gate: CellGate[Group]
    file: str
    """Name of the file."""

    @property
    def cell(self) -> Group:
        """The cell that was measured."""
        return self.gate.cell

    @property
    def commit(self) -> str:
        """Seven digits of the commit, with a star if there were changes; "" without git."""
        if self.revision is None:
            return ""
        star = "*" if self.revision.dirty else ""
        return f"{self.revision.commit[:7]}{star}"

    @property
    def path(self) -> str:
        """Path of the case file from the project's folder."""
        return self.cell.case_file or self.cell.path

    @property
    def branch(self) -> str:
        """The branch; "" without git, or where no branch was checked out."""
        return (self.revision.branch or "") if self.revision else ""

    @property
    def cases(self) -> Mapping[str, tuple[str, str]]:
        """Digests of the prompt and of the checks of each case."""
        return {
            trial.case: (trial.prompt_digest, trial.grader_digest)
            for trial in self.cell.current_trials
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Series(Generic[Group]):
    """The points of one skill on one model, the oldest first."""

    points: Sequence[Point[Group]]

    @property
    def last(self) -> Point[Group]:
        """The latest point."""
        return self.points[-1]

    @property
    def breaks(self) -> Mapping[int, str]:
        """Why a point cannot be compared with the one before it, by its index."""
        pairs = zip(self.points, self.points[1:], strict=False)
        return {
            index: reason
            for index, (old, new) in enumerate(pairs, 1)
            if (reason := difference(old, new))
        }

    @property
    def branches(self) -> frozenset[str]:
        """The branches on which the runs were made."""
        return frozenset(filter(None, (point.branch for point in self.points)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """One skill on one model: its lift, and how often it was chosen."""

    title: str
    """Name of the skill, with its folder if another skill has the same name."""
    skill: str
    model: str
    """Label of the model."""
    lift: Series[Cell] | None
    triggers: Series[TriggerCell] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """Everything that a folder of runs holds."""

    subjects: Sequence[Subject]
    files: int
    """Number of files that were read."""
    partial: int
    """Number of cells left out because only some of their trials ran."""
    unreadable: Sequence[str]
    """A line for each file that is no report."""

    @property
    def series(self) -> Sequence[Series[Cell]]:
        """The lifts over time."""
        return [subject.lift for subject in self.subjects if subject.lift]

    @property
    def triggers(self) -> Sequence[Series[TriggerCell]]:
        """How often they were chosen."""
        return [subject.triggers for subject in self.subjects if subject.triggers]


def read_history(folder: Path) -> History:
    """Read the runs in a folder, in the order of their dates.

    Raises:
        OSError: The folder or a file cannot be read.
    """
    points: list[Point[Any]] = []
    unreadable = []
    files = 0
    for file in sorted(folder.glob("*.json")):
        try:
            report = read_report(file)
        except ReportError as error:
            unreadable.append(f"{file.name}: {error}")
            continue
        files += 1
        date, revision = report.sessions[-1].date, report.sessions[-1].revision
        points += [
            Point(date=date, revision=revision, gate=gate, file=file.name)
            for gate in report.decisions
        ]
    complete = [point for point in points if len(point.cell.trials) == point.cell.planned]
    return History(
        subjects=tuple(_subjects(complete)),
        files=files,
        partial=len(points) - len(complete),
        unreadable=unreadable,
    )


def difference(old: Point[Group], new: Point[Group]) -> str | None:
    """Return why the figures of two points cannot be compared, None if they can.

    They can if the cases, their checks and the model that answered are the same, so that only the
    skill and chance can make a difference.
    """
    parts = []
    added, removed = new.cases.keys() - old.cases.keys(), old.cases.keys() - new.cases.keys()
    if added or removed:
        counts = []
        if added:
            counts.append(f"+{len(added)}")
        if removed:
            counts.append(f"-{len(removed)}")
        parts.append(f"cases changed ({', '.join(counts)})")
    both = new.cases.keys() & old.cases.keys()
    if any(new.cases[case][0] != old.cases[case][0] for case in both):
        parts.append("prompts changed")
    if any(new.cases[case][1] != old.cases[case][1] for case in both):
        parts.append("checks changed")
    before, after = (isinstance(p.cell, Cell) and p.cell.correction is not None for p in (old, new))
    if before is not after:
        parts.append("lift corrected by labels" if after else "lift no longer corrected")
    if new.cell.resolved != old.cell.resolved:
        parts.append(f"model changed: {old.cell.resolved} to {new.cell.resolved}")
    elif new.cell.served != old.cell.served:
        was, now = (", ".join(each.cell.served) or "unknown" for each in (old, new))
        parts.append(f"served model changed: {was} to {now}")
    return "; ".join(parts) or None


def _subjects(points: Iterable[Point[Any]]) -> Iterator[Subject]:
    grouped: dict[tuple[str, str, str], list[Point[Any]]] = {}
    paths: dict[str, set[str]] = {}
    for point in sorted(points, key=lambda point: (point.date, point.file)):
        skill = point.cell.skill
        grouped.setdefault((skill, point.path, point.cell.model), []).append(point)
        paths.setdefault(skill, set()).add(point.path)
    for skill, path, model in sorted(grouped):
        of_model = grouped[skill, path, model]
        yield Subject(
            title=f"{skill} ({path})" if len(paths[skill]) > 1 else skill,
            skill=skill,
            model=model,
            lift=_series(of_model, Cell),
            triggers=_series(of_model, TriggerCell),
        )


def _series(points: Iterable[Point[Any]], kind: type[Group]) -> Series[Group] | None:
    """Return the points of one kind of cell, None if there are none."""
    of_kind = [point for point in points if isinstance(point.cell, kind)]
    return Series(points=of_kind) if of_kind else None
