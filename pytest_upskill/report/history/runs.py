"""The runs of the past: how one is kept, and what each measured of each skill on each model."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Literal

from pydantic import TypeAdapter, ValidationError

from pytest_upskill.figures.gate import Gate
from pytest_upskill.figures.presentation import Scalar, columns_of, scalars
from pytest_upskill.figures.wording import money
from pytest_upskill.project.files import read_state, write_file
from pytest_upskill.project.git import Revision
from pytest_upskill.report.document import Report
from pytest_upskill.report.files.json import ReportError, read_report
from pytest_upskill.stats import CaseCounts, regression_test, significant

_DIGEST = 8
"""Characters of a digest."""

Kind = Literal["lift", "choice"]


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptCell:
    """What a run measured of a skill on a model; heads and names are those of its kind."""

    skill: str
    path: str
    """Path of the case file from the project's folder."""
    model: str
    resolved: str
    """Full name of the model."""
    served: str
    """Model ids that the API returned, separated by commas."""
    kind: Kind
    cases: str
    """Digest of the cases' prompts and checks."""
    complete: bool
    """Whether all trials ran."""
    columns: tuple[str, ...]
    values: tuple[Scalar, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptRun:
    """The file of a run: figures without answers, and each of their names once."""

    kept: Literal[1] = 1
    date: datetime
    """End of the run, in UTC."""
    command: str
    revision: Revision | None
    heads: dict[Kind, tuple[str, ...]]
    """Columns of a table."""
    names: dict[Kind, tuple[str, ...]]
    """Names of the figures that are known of any cell."""
    cells: tuple[KeptCell, ...]


_RUN = TypeAdapter(KeptRun)


@dataclass(frozen=True, kw_only=True)
class Point:
    """One cell of one run."""

    run: KeptRun
    cell: KeptCell
    file: str
    """Name of the file."""

    @cached_property
    def figures(self) -> Mapping[str, Scalar]:
        """The figures by their names; an interval has ``.low`` and ``.high``."""
        return dict(zip(self.run.names[self.cell.kind], self.cell.values, strict=True))

    @property
    def columns(self) -> Mapping[str, str]:
        """The most important figures as texts, by the heads of a table."""
        return dict(zip(self.run.heads[self.cell.kind], self.cell.columns, strict=True))

    @property
    def chooses(self) -> bool:
        """Whether it is about how often the skill is chosen, not about its lift."""
        return self.cell.kind == "choice"

    @property
    def revision(self) -> Revision:
        """What was checked out; empty without git."""
        return self.run.revision or Revision(commit="", branch="", dirty=False)

    @property
    def commit(self) -> str:
        """Seven digits of the commit, with a star if there were changes; "" without git."""
        return f"{self.revision.commit[:7]}{'*' if self.revision.dirty else ''}"

    @property
    def lift(self) -> float | None:
        """The lift, corrected if there are labels; None if it is not known."""
        corrected = self.number("lift.corrected")
        return self.number("lift") if corrected is None else corrected

    @property
    def cost(self) -> str:
        """The cost of a run with the skill; "" if it is not known."""
        cost = self.number("cost_usd.with")
        return "" if cost is None else money(cost)

    @property
    def counts(self) -> tuple[int, int]:
        """Passes and valid runs with the skill; none if they are not known."""
        return int(self.number("passes.with") or 0), int(self.number("runs.with") or 0)

    def number(self, name: str) -> float | None:
        """Return a figure that is a number, None if it is not known."""
        value = self.figures.get(name)
        return float(value) if isinstance(value, int | float) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """The points of the lift of a skill on a model, or of its choice by it, the oldest first."""

    title: str
    """Name of the skill, with its path if another skill has the same name."""
    points: Sequence[Point]

    @property
    def last(self) -> Point:
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
    def change(self) -> float | None:
        """Change of the lift since the last comparable run."""
        if len(self.points) == 1 or len(self.points) - 1 in self.breaks:
            return None
        now, before = self.last.lift, self.points[-2].lift
        return None if now is None or before is None else now - before

    def is_worse(self, index: int) -> bool:
        """Return whether a run shows a regression, by its gate or against the one before it."""
        new = self.points[index]
        if new.figures.get("regressed"):
            return True
        if not index or index in self.breaks:
            return False
        # The new skill stands for *with*, and the old one for *without*.
        counts = CaseCounts(*new.counts, *self.points[index - 1].counts)
        return counts.usable and significant(regression_test([counts]))


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """Everything that a folder of runs holds."""

    series: Sequence[Series] = ()
    files: int = 0
    """Number of files that were read."""
    partial: int = 0
    """Number of cells left out because only some of their trials ran."""
    unreadable: Sequence[str] = field(default_factory=list)
    """A line for each file that is no run."""


def read_history(folder: Path) -> History:
    """Read the runs in a folder, in the order of their dates; merged JSON reports are runs too.

    Raises:
        OSError: The folder or a file cannot be read.
    """
    runs, unreadable = dict[str, KeptRun](), list[str]()
    for file in sorted(folder.glob("*.json")):
        try:
            runs[file.name] = _read_run(file)
        except ReportError as error:
            unreadable.append(str(error))
    points = [
        Point(run=run, cell=cell, file=name) for name, run in runs.items() for cell in run.cells
    ]
    complete = [point for point in points if point.cell.complete]
    return History(
        series=tuple(_series(complete)),
        files=len(runs),
        partial=len(points) - len(complete),
        unreadable=unreadable,
    )


def _read_run(file: Path) -> KeptRun:
    """Read the file of a run, or a JSON report.

    Raises:
        ReportError: It is neither.
    """
    try:
        return _RUN.validate_json(read_state(file))
    except OSError as error:
        raise ReportError(f"{file}: {error.strerror}") from None
    except ValidationError:
        return kept_run(read_report(file))


def difference(old: Point, new: Point) -> str | None:
    """Return why the figures of two points cannot be compared, None if they can.

    They can if the cases, their checks and the model that answered are the same, so that only the
    skill and chance can make a difference.
    """
    parts = ["cases changed"] if old.cell.cases != new.cell.cases else []
    was, corrected = (each.number("lift.corrected") is not None for each in (old, new))
    if was is not corrected:
        parts.append("lift corrected by labels" if corrected else "lift no longer corrected")
    then, model = (f"{each.cell.resolved} ({each.cell.served})" for each in (old, new))
    if then != model:
        parts.append(f"model changed: {then} to {model}")
    return "; ".join(parts) or None


def _series(points: Iterable[Point]) -> Iterator[Series]:
    grouped: dict[tuple[str, str, str, bool], list[Point]] = {}
    paths: dict[str, set[str]] = {}
    for point in sorted(points, key=lambda point: (point.run.date, point.file)):
        cell = point.cell
        grouped.setdefault((cell.skill, cell.path, cell.model, point.chooses), []).append(point)
        paths.setdefault(cell.skill, set()).add(cell.path)
    # The lift of a skill comes before its choice.
    for skill, path, model, chooses in sorted(grouped):
        title = f"{skill} ({path})" if len(paths[skill]) > 1 else skill
        yield Series(title=title, points=grouped[skill, path, model, chooses])


def log_run(report: Report, folder: Path) -> Path:
    """Write what a run measured into a folder, and return the path of the file.

    Its name is the time of the run and a digest of the content, so that the histories of several
    machines and branches can be put into one folder.

    Args:
        report: Report of one session.
        folder: Folder of the history; it is created if it does not exist.

    Raises:
        OSError: The file cannot be written.
    """
    text = _RUN.dump_json(kept_run(report)) + b"\n"
    digest = hashlib.sha256(text).hexdigest()[:_DIGEST]
    file = folder / f"{report.sessions[-1].date:%Y%m%dT%H%M%SZ}-{digest}.json"
    write_file(file, text, mode=0o644)
    return file


def kept_run(report: Report) -> KeptRun:
    """Return what the history keeps of a report."""
    session = report.sessions[-1]
    # What offline chooses by words has no figures.
    gates = [*report.lifts, *report.triggers]
    names: dict[Kind, dict[str, None]] = {}
    for gate in gates:
        known = {name: None for name, value in scalars(gate).items() if value is not None}
        names.setdefault(_kind(gate), {}).update(known)
    return KeptRun(
        date=session.date,
        command=str(session.options.get("command", "pytest")),
        revision=session.revision,
        heads={_kind(gate): tuple(columns_of(gate)) for gate in gates},
        names={kind: tuple(of_kind) for kind, of_kind in names.items()},
        cells=tuple(_kept_cell(gate, names[_kind(gate)]) for gate in gates),
    )


def _kept_cell(gate: Gate, names: Iterable[str]) -> KeptCell:
    cell = gate.cell
    cases = sorted(
        (each.case, each.prompt_digest, each.grader_digest) for each in cell.current_trials
    )
    values = (
        float(f"{value:.4g}") if isinstance(value, float) else value
        for value in map(scalars(gate).get, names)
    )
    return KeptCell(
        skill=cell.skill,
        path=cell.case_file or cell.path,
        model=cell.model,
        resolved=cell.resolved,
        served=", ".join(cell.served),
        kind=_kind(gate),
        cases=hashlib.sha256(repr(cases).encode()).hexdigest()[:_DIGEST],
        complete=len(cell.trials) == cell.planned,
        columns=tuple(columns_of(gate).values()),
        values=tuple(values),
    )


def _kind(gate: Gate) -> Kind:
    return "choice" if gate.cell.chooses else "lift"
