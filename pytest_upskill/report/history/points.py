"""The history as points: what each run measured of each skill on each model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from pytest_upskill.cells.cell import Cell
from pytest_upskill.report.files.document import Report
from pytest_upskill.report.files.json import ReportError, read_json
from pytest_upskill.repository.revision import Revision


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One cell of one run."""

    date: datetime
    """End of the run, in UTC."""
    revision: Revision | None
    cell: Cell
    file: str
    """Name of the file."""

    @property
    def commit(self) -> str:
        """Seven digits of the commit, with a star if there were changes; "" without git."""
        if self.revision is None:
            return ""
        return self.revision.commit[:7] + "*" * self.revision.dirty

    @property
    def cases(self) -> Mapping[str, tuple[str, str]]:
        """Digests of the prompt and of the checks of each case."""
        return {
            trial.case: (trial.prompt_digest, trial.grader_digest)
            for trial in self.cell.trials
            if trial.arm == "with_skill"
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """The points of one skill on one model, the oldest first."""

    title: str
    """Name of the skill, with its folder if another skill has the same name."""
    model: str
    """Label of the model."""
    points: Sequence[Point]

    @property
    def last(self) -> Point:
        """The latest point."""
        return self.points[-1]

    @property
    def breaks(self) -> Mapping[int, str]:
        """Why a point cannot be compared with the one before it, by its index."""
        pairs = zip(self.points, self.points[1:], strict=False)
        found = ((index, difference(old, new)) for index, (old, new) in enumerate(pairs, 1))
        return {index: why for index, why in found if why}


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """Everything that a folder of runs holds."""

    series: Sequence[Series]
    files: int
    """Number of files that were read."""
    partial: int
    """Number of cells left out because only some of their trials ran."""
    unreadable: Sequence[str]
    """A line for each file that is no report."""


def read_history(folder: Path) -> History:
    """Read the runs in a folder, in the order of their dates.

    Raises:
        OSError: The folder or a file cannot be read.
    """
    points: list[Point] = []
    unreadable = []
    partial = files = 0
    for file in sorted(folder.glob("*.json")):
        try:
            report = read_json(file.read_bytes())
        except ReportError as error:
            unreadable.append(f"{file.name}: {error}")
            continue
        files += 1
        whole = [cell for cell in report.cells if len(cell.trials) == cell.planned]
        partial += len(report.cells) - len(whole)
        points += _points(report, whole, file.name)
    return History(
        series=tuple(_series(points)), files=files, partial=partial, unreadable=unreadable
    )


def difference(old: Point, new: Point) -> str | None:
    """Return why the figures of two points cannot be compared, None if they can.

    They can if the cases, their checks and the model that answered are the same: what is left to
    differ is the skill, and chance.
    """
    parts = []
    added, removed = new.cases.keys() - old.cases.keys(), old.cases.keys() - new.cases.keys()
    if added or removed:
        counts = [f"+{len(added)}"] * bool(added) + [f"-{len(removed)}"] * bool(removed)
        parts.append(f"cases changed ({', '.join(counts)})")
    both = new.cases.keys() & old.cases.keys()
    if any(new.cases[case][0] != old.cases[case][0] for case in both):
        parts.append("prompts changed")
    if any(new.cases[case][1] != old.cases[case][1] for case in both):
        parts.append("checks changed")
    if new.cell.resolved != old.cell.resolved:
        parts.append(f"model changed: {old.cell.resolved} to {new.cell.resolved}")
    elif new.cell.served != old.cell.served:
        was, now = (", ".join(each.cell.served) or "unknown" for each in (old, new))
        parts.append(f"served model changed: {was} to {now}")
    return "; ".join(parts) or None


def _points(report: Report, cells: Iterable[Cell], file: str) -> Iterator[Point]:
    session = report.sessions[-1]
    for cell in cells:
        yield Point(date=session.date, revision=session.revision, cell=cell, file=file)


def _series(points: Iterable[Point]) -> Iterator[Series]:
    grouped: dict[tuple[str, str, str], list[Point]] = {}
    for point in sorted(points, key=lambda point: (point.date, point.file)):
        cell = point.cell
        key = (cell.skill, cell.case_file or cell.path, cell.model)
        grouped.setdefault(key, []).append(point)
    paths: dict[str, set[str]] = {}
    for skill, path, _ in grouped:
        paths.setdefault(skill, set()).add(path)
    for (skill, path, model), group in sorted(grouped.items()):
        title = f"{skill} ({path})" if len(paths[skill]) > 1 else skill
        yield Series(title=title, model=model, points=group)
