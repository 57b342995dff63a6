"""The runs of the past: how one is kept, and what each measured of each skill on each model."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from pytest_upskill.checks import CheckResult
from pytest_upskill.figures.gate import Gate
from pytest_upskill.models import AgentTurn, Completion, ToolUse
from pytest_upskill.project.files import write_file
from pytest_upskill.project.git import Revision
from pytest_upskill.report.document import Report
from pytest_upskill.report.files.json import ReportError, read_report, write_json
from pytest_upskill.trials.result import RunResult, TrialResult

_NOT_KEPT = "(the history keeps no answers)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One cell of one run."""

    date: datetime
    """End of the run, in UTC."""
    revision: Revision | None
    gate: Gate
    file: str
    """Name of the file."""

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
        return self.gate.cell.case_file or self.gate.cell.path

    @property
    def branch(self) -> str:
        """The branch; "" without git, or where no branch was checked out."""
        return (self.revision.branch or "") if self.revision else ""

    @property
    def cases(self) -> Mapping[str, tuple[str, str]]:
        """Digests of the prompt and of the checks of each case."""
        return {
            trial.case: (trial.prompt_digest, trial.grader_digest)
            for trial in self.gate.cell.current_trials
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """The points of the lift of a skill on a model, or of its choice by it, the oldest first."""

    title: str
    """Name of the skill, with its path if another skill has the same name."""
    skill: str
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
        return {
            index: reason
            for index, (old, new) in enumerate(pairs, 1)
            if (reason := difference(old, new))
        }


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
            Point(date=date, revision=revision, gate=gate, file=file.name) for gate in report.gates
        ]
    cells = [point.gate.cell for point in points]
    complete = [
        point for point, cell in zip(points, cells, strict=True) if len(cell.trials) == cell.planned
    ]
    return History(
        series=tuple(_series(complete)),
        files=files,
        partial=len(points) - len(complete),
        unreadable=unreadable,
    )


def difference(old: Point, new: Point) -> str | None:
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
    one, other = old.gate.cell, new.gate.cell
    before, after = (each.lift.correction is not None for each in (one, other))
    if before is not after:
        parts.append("lift corrected by labels" if after else "lift no longer corrected")
    if other.resolved != one.resolved:
        parts.append(f"model changed: {one.resolved} to {other.resolved}")
    elif other.served != one.served:
        was, now = (", ".join(each.served) or "unknown" for each in (one, other))
        parts.append(f"served model changed: {was} to {now}")
    return "; ".join(parts) or None


def _series(points: Iterable[Point]) -> Iterator[Series]:
    grouped: dict[tuple[str, str, str, bool], list[Point]] = {}
    paths: dict[str, set[str]] = {}
    for point in sorted(points, key=lambda point: (point.date, point.file)):
        cell = point.gate.cell
        key = (cell.skill, point.path, cell.model, cell.chooses)
        grouped.setdefault(key, []).append(point)
        paths.setdefault(cell.skill, set()).add(point.path)
    for (skill, path, model, _), of_kind in sorted(grouped.items(), key=lambda item: item[0]):
        title = f"{skill} ({path})" if len(paths[skill]) > 1 else skill
        yield Series(title=title, skill=skill, model=model, points=of_kind)


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
    return replace(report, gates=tuple(map(_gate, report.gates)))


def _gate(gate: Gate) -> Gate:
    return replace(gate, cell=replace(gate.cell, trials=tuple(map(_trial, gate.cell.trials))))


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
        agent_run=agent_run
        and replace(
            agent_run, changed=(), deleted=(), read=(), turns=tuple(map(_turn, agent_run.turns))
        ),
    )


def _turn(turn: AgentTurn) -> AgentTurn:
    return AgentTurn(calls=tuple(ToolUse(name=call.name, input="") for call in turn.calls))


def _check(check: CheckResult) -> CheckResult:
    return replace(check, message=check.name, detail="")
