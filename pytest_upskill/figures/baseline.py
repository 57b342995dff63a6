"""Baselines: files to be committed and reviewed, which belongs to which cell, and their update."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import quote

from pydantic import Field, TypeAdapter

from pytest_upskill.figures.cell import Cell
from pytest_upskill.project.files import json_by_line, read_state, write_file
from pytest_upskill.project.messages import agreeing, counted
from pytest_upskill.trials.result import TrialResult


class BaselineError(Exception):
    """A baseline file cannot be used; the message has its name and the cure."""


@dataclass(frozen=True, slots=True)
class ArmCounts:
    """Passes and valid runs of one case in one arm."""

    passes: Annotated[int, Field(ge=0, strict=True)]
    # At most 1000: a test of a million takes hours.
    runs: Annotated[int, Field(ge=1, le=1000, strict=True)]

    def __post_init__(self) -> None:
        if self.passes > self.runs:
            raise ValueError(f"{self.passes} passes of {self.runs} runs")

    def __str__(self) -> str:
        return f"{self.passes}/{self.runs}"


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineCase:
    """Results of one case."""

    id: str
    digest: str
    """Digest of the prompt without the skill, the same in every arm."""
    grader: str
    """Digest of the checks."""
    with_skill: ArmCounts
    """With the skill; of a query, the runs in which the right skill was chosen."""
    without_skill: ArmCounts | None = None
    """None of a query, as a model then chooses among all skills."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """Results of the cases, or of the queries, of one case file on one model."""

    format: Literal[1] = 1
    skill: str
    model: str
    """Label of the model."""
    resolved: str
    """Full name of the model."""
    served: tuple[str, ...]
    """Ids that the API returned."""
    date: str
    """Day of the run, ISO 8601, in UTC."""
    version: str
    """Version of pytest-upskill."""
    skill_digest: str = ""
    """Digest of what the skill adds to a prompt; empty in older files."""
    cases: tuple[BaselineCase, ...]
    """Cases in the order of their ids."""


@cache
def _baseline() -> TypeAdapter[Baseline]:
    """Return what reads and writes a baseline; slow to make, and most sessions have none."""
    return TypeAdapter(Baseline)


def read_baseline(file: Path) -> Baseline | None:
    """Read a baseline file and return the baseline, None if the file does not exist.

    Raises:
        BaselineError: The file cannot be read, or is not a baseline.
    """
    try:
        return _baseline().validate_json(read_state(file))
    except FileNotFoundError:
        return None
    except OSError as error:
        problem = f"cannot be read: {error.strerror}"
        raise BaselineError(f"{file}: {problem}: repair or move it") from None
    except ValueError:
        raise BaselineError(
            f"{file}: not a baseline: restore it from git, or delete it and record one with "
            "--upskill-baseline-update"
        ) from None


def baseline_path(cell: Cell) -> Path:
    """Return the path of a cell's baseline from the folder of all: that of its case file."""
    return path_of(cell.case_file or cell.path, cell.model, chooses=cell.chooses)


def path_of(case_file: str, model: str, *, chooses: bool) -> Path:
    """Return the path of the baseline of a case file, or of its queries, on a model."""
    return Path(*map(_part, filter(None, case_file.split("/"))), _name(model, chooses))


def case_file_of(path: Path) -> str:
    """Return the path of the case file of a baseline, from the rootdir."""
    parts = (".." if part == _UP else part.replace("%25", "%") for part in path.parent.parts)
    return "/".join(parts)


_UP = "%2E%2E"


def _part(name: str) -> str:
    """Return a path component escaped so that it cannot leave the folder."""
    return _UP if name == ".." else name.replace("%", "%25")


def _name(model: str, chooses: bool) -> str:
    quoted = quote(model, safe=" ")
    safe = f"%2E{quoted[1:]}" if quoted.startswith(".") else quoted
    # No quoted label has an @.
    return f"{safe}@trigger.json" if chooses else f"{safe}.json"


Baselines = Mapping[Path, Baseline]
"""Baselines by their paths from the folder of all."""


def read_baselines(folder: Path, models: Iterable[str]) -> Baselines:
    """Read the baselines of all case files on the given models.

    Args:
        folder: Folder of the baseline files.
        models: Labels of the models.

    Raises:
        BaselineError: A baseline file cannot be used.
    """
    names = {_name(model, chooses) for model in models for chooses in (False, True)}
    # The folder of a case file may have the name of a baseline file.
    files = [file for file in folder.rglob("*.json") if file.name in names and not file.is_dir()]
    read = ((file.relative_to(folder), read_baseline(file)) for file in sorted(files))
    return {path: baseline for path, baseline in read if baseline}


@dataclass(frozen=True, slots=True, kw_only=True)
class Update:
    """Outcome of the update of one baseline."""

    text: str
    """Complete sentence, one line."""
    is_broken: bool = False
    """Whether the file could not be read or written."""


def update_baseline(cell: Cell, folder: Path, *, regressed: bool = False) -> Update:
    """Write the baseline of a cell, if it is complete, into a folder of baseline files.

    The file stays as it is if only its date or version would change, or if the cell was compared
    with it and regressed: the next comparison would find nothing.
    """
    what = f"{'trigger ' if cell.chooses else ''}baseline"
    name = f"{cell.skill} on {cell.model}"
    worse = "it became worse than this one: where that is right, run without --upskill-compare"
    if reason := worse if regressed else _incomplete_reason(cell):
        return Update(text=f"no {what} written of {name}: {reason}")
    file, new = folder / baseline_path(cell), baseline_of(cell)
    try:
        old = read_baseline(file)
        if old and replace(new, date=old.date, version=old.version) == old:
            return Update(text=f"{what} of {name}: {file} is up to date")
        fields = _baseline().dump_python(new, mode="json", exclude_none=True)
        write_file(file, json_by_line(fields), mode=0o644)
    except BaselineError as error:
        return Update(text=f"no {what} written of {name}: {error}", is_broken=True)
    except OSError as error:
        why = f"cannot write {file}: {error.strerror}"
        return Update(text=f"no {what} written of {name}: {why}", is_broken=True)
    cases = cell.count(len(new.cases))
    stored = f"{cases}, {counted(_runs(new), 'run')}{' that count' if cell.copied else ''}"
    if old and _runs(new) < _runs(old):
        stored += f", fewer than before: {_runs(old)}"
    return Update(text=f"{what} of {name}: {file} written ({stored}), commit it")


def _runs(baseline: Baseline) -> int:
    """Return the number of runs in all cases and arms."""
    arms = (arm for case in baseline.cases for arm in (case.with_skill, case.without_skill) if arm)
    return sum(arm.runs for arm in arms)


def baseline_of(cell: Cell) -> Baseline:
    """Return the baseline of a cell, dated today."""
    pairs: Sequence[tuple[TrialResult, TrialResult | None]] = cell.lift.measured_pairs
    if cell.chooses:
        pairs = [(trial, None) for trial in cell.current_trials]
    cases = [
        BaselineCase(
            id=current.case,
            digest=current.prompt_digest,
            grader=current.grader_digest,
            with_skill=ArmCounts(current.passes, len(current.runs)),
            without_skill=ArmCounts(without.passes, len(without.runs)) if without else None,
        )
        for current, without in pairs
    ]
    return Baseline(
        skill=cell.skill,
        model=cell.model,
        resolved=cell.resolved,
        served=tuple(cell.served),
        date=datetime.now(UTC).date().isoformat(),
        version=version("pytest-upskill"),
        skill_digest=next((current.skill_digest for current, _ in pairs), ""),
        cases=tuple(sorted(cases, key=lambda case: case.id)),
    )


def _incomplete_reason(cell: Cell) -> str:
    """Return why a cell is too incomplete for a baseline, empty if it is complete."""
    if len(cell.trials) != cell.planned:
        return f"{len(cell.trials)} of {cell.planned} trials ran: run all of them"
    if cell.missing:
        missing = f"{cell.missing} of its runs {agreeing('is', cell.missing)} missing"
        return f"{missing}: run again, recorded answers cost nothing"
    if cell.cut_failures:
        return cell.open_runs
    if any(trial.skipped_runs for trial in cell.trials):
        return "it was stopped early: run without --upskill-early-stop"
    return ""
