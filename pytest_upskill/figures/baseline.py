"""Baselines: files to be committed and reviewed, which belongs to which cell, and their update."""

from __future__ import annotations

import json
import posixpath
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, NamedTuple
from urllib.parse import quote, unquote

from pydantic import Field, TypeAdapter
from pydantic_core import from_json

from pytest_upskill.figures.cell import Cell
from pytest_upskill.project.files import read_state, write_file
from pytest_upskill.trials.result import TrialResult

FORMAT = 1
"""Version of the file format; newer ones cannot be read."""

_MAX_RUNS = 1000
"""Maximum number of runs of a case: a test of a million takes hours."""


class BaselineError(Exception):
    """A baseline file cannot be used; the message has its name and the cure."""


@dataclass(frozen=True, slots=True)
class ArmCounts:
    """Passes and valid runs of one case in one arm."""

    passes: Annotated[int, Field(ge=0, strict=True)]
    runs: Annotated[int, Field(ge=1, le=_MAX_RUNS, strict=True)]

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

    format: int = FORMAT
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
    skill_digest: str
    """Digest of the skill block."""
    cases: tuple[BaselineCase, ...]
    """Cases in the order of their ids."""


@cache
def _baseline() -> TypeAdapter[Baseline]:
    """Return what reads and writes a baseline; slow to make, and most sessions have none."""
    return TypeAdapter(Baseline)


def read_baseline(file: Path) -> Baseline | None:
    """Read a baseline file and return the baseline, None if the file does not exist.

    Raises:
        BaselineError: The file cannot be read, is not a baseline, or has a newer format.
    """
    try:
        text = read_state(file)
        newer = from_json(text)["format"]
        if type(newer) is int and newer > FORMAT:
            raise BaselineError(
                f"{file}: format {newer} is newer than this pytest-upskill reads ({FORMAT}): "
                "pip install -U pytest-upskill"
            )
        return _baseline().validate_json(text)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise BaselineError(
            f"{file}: cannot be read: {error.strerror}: repair or move it"
        ) from None
    except (ValueError, LookupError, TypeError):
        raise BaselineError(
            f"{file}: not a baseline: restore it from git, or delete it and record one with "
            "--upskill-baseline-update"
        ) from None


def write_baseline(file: Path, baseline: Baseline) -> bool:
    """Write a baseline atomically, unless only its date or version would change.

    Returns:
        Whether the file was written.

    Raises:
        BaselineError: This version cannot read the existing file; it is not overwritten.
        OSError: The file cannot be written.
    """
    old = read_baseline(file)
    if old and replace(baseline, date=old.date, version=old.version) == old:
        return False
    write_file(file, _text(baseline).encode(), mode=0o644)
    return True


def _text(baseline: Baseline) -> str:
    """Return JSON with a line for each field and case, which keeps diffs and conflicts small."""
    head = _baseline().dump_python(baseline, mode="json", exclude_none=True)
    cases = ",\n".join(f"  {_json(case)}" for case in head.pop("cases"))
    lines = (f" {_json(name)}: {_json(value)},\n" for name, value in head.items())
    return "{\n" + "".join(lines) + ' "cases": [\n' + cases + "\n ]\n}\n"


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


class BaselineKey(NamedTuple):
    """What the path of a baseline file says: the cell that it belongs to."""

    case_file: str
    """Path from the folder that holds ``.upskill``, with slashes."""
    model: str
    """Label of the model."""
    chooses: bool
    """Whether it is of queries for which the model chose a skill."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredBaseline:
    """A baseline and its file."""

    file: Path
    baseline: Baseline
    has_moved: bool
    """Whether its case file no longer exists at the recorded path."""


@dataclass(frozen=True, slots=True)
class Baselines:
    """The stored baselines of the chosen models."""

    stored: Mapping[BaselineKey, StoredBaseline]

    def of(self, cells: Sequence[Cell]) -> list[StoredBaseline | None]:
        """Return the baseline of each cell, None for a cell without one.

        A baseline with the same case file and model belongs to the cell. If there is none, the
        skill may have been moved: then a baseline with the same file name, skill and model belongs
        to it, if its case file no longer exists. With several such baselines or cells there is
        no match.

        Args:
            cells: All cells of the session.
        """
        claims = Counter(_unmoved(key_of(cell), cell.skill) for cell in cells)
        moved: dict[object, list[StoredBaseline]] = {}
        for key, stored in self.stored.items():
            if stored.has_moved:
                moved.setdefault(_unmoved(key, stored.baseline.skill), []).append(stored)

        def find(cell: Cell) -> StoredBaseline | None:
            key = key_of(cell)
            same = moved.get(_unmoved(key, cell.skill), [])
            is_it = len(same) == 1 and claims[_unmoved(key, cell.skill)] == 1
            return self.stored.get(key) or (same[0] if is_it else None)

        return [find(cell) for cell in cells]

    def unused(self, cells: Sequence[Cell]) -> Iterator[str]:
        """Yield a line for each file that can be deleted, as its cases are gone.

        Args:
            cells: All measured cells.
        """
        used = {each.file for each in self.of(cells) if each}
        for key, each in self.stored.items():
            if each.has_moved and each.file not in used:
                name = f"{each.baseline.skill} on {key.model}"
                yield f"{name}: {key.case_file} is gone: delete the baseline, {each.file}"


def key_of(cell: Cell) -> BaselineKey:
    """Return the key of a cell's baseline."""
    return BaselineKey(cell.case_file or cell.path, cell.model, cell.chooses)


def _unmoved(key: BaselineKey, skill: str) -> tuple[str, str, bool, str]:
    """Return what stays the same if the folder of a skill is moved."""
    return posixpath.basename(key.case_file), key.model, key.chooses, skill


def baseline_file(folder: Path, key: BaselineKey) -> Path:
    """Return the path of a baseline file: below ``folder``, the same path as the case file's."""
    return folder.joinpath(*map(_part, key.case_file.split("/")), _name(key.model, key.chooses))


def read_baselines(folder: Path, models: Iterable[str], project: Path | None) -> Baselines:
    """Read the baselines of all case files on the given models.

    Args:
        folder: Folder of the baseline files.
        models: Labels of the models.
        project: Folder that contains ``.upskill``, to check which case files still exist; None if
            it is unknown, so that none counts as moved.

    Raises:
        BaselineError: A baseline file cannot be used.
    """
    keys = {
        _name(model, chooses): (model, chooses) for model in models for chooses in (False, True)
    }
    stored = {}
    for file in sorted(folder.rglob("*.json")):
        # The folder of a case file may have the name of a baseline file.
        if file.name not in keys or file.is_dir() or (baseline := read_baseline(file)) is None:
            continue
        case_file = "/".join(map(unquote, file.parent.relative_to(folder).parts))
        has_moved = project is not None and not (project / case_file.partition("::")[0]).exists()
        key = BaselineKey(case_file, *keys[file.name])
        stored[key] = StoredBaseline(file=file, baseline=baseline, has_moved=has_moved)
    return Baselines(stored)


def _part(name: str) -> str:
    """Return a path component escaped so that it cannot leave the folder; `unquote` reverts it."""
    return "%2E%2E" if name == ".." else name.replace("%", "%25")


def _name(model: str, chooses: bool) -> str:
    quoted = quote(model, safe=" ")
    safe = f"%2E{quoted[1:]}" if quoted.startswith(".") else quoted
    # No quoted label has an @.
    return f"{safe}@trigger.json" if chooses else f"{safe}.json"


def counts_of(trial: TrialResult) -> ArmCounts | None:
    """Return a trial's passes and valid runs; None without a valid run."""
    return ArmCounts(trial.passes, len(trial.runs)) if trial.runs else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Update:
    """Outcome of the update of one baseline."""

    text: str
    """Complete sentence, one line."""
    refused: bool = False
    """Whether the file could not be written."""


def update_baseline(cell: Cell, folder: Path) -> Update:
    """Write the baseline of a cell, if it is complete, into a folder of baseline files."""
    what = f"{'trigger ' if cell.chooses else ''}baseline"
    file = baseline_file(folder, key_of(cell))
    refused = False
    reason = _incomplete_reason(cell)
    if not reason:
        try:
            written = write_baseline(file, baseline_of(cell))
        except BaselineError as error:
            reason, refused = str(error), True
        except OSError as error:
            reason, refused = f"cannot write {file}: {error.strerror}", True
    if reason:
        text = f"no {what} written of {cell.skill} on {cell.model}: {reason}"
        return Update(text=text, refused=refused)
    done = "written, commit it" if written else "is up to date"
    return Update(text=f"{what} of {cell.skill} on {cell.model}: {file} {done}")


def baseline_of(cell: Cell) -> Baseline:
    """Return the baseline of a cell, dated today."""
    pairs: Sequence[tuple[TrialResult, TrialResult | None]] = cell.lift.pairs.measured
    if cell.chooses:
        pairs = [(trial, None) for trial in cell.current_trials]
    cases = [
        BaselineCase(
            id=current.case,
            digest=current.prompt_digest,
            grader=current.grader_digest,
            with_skill=ArmCounts(current.passes, len(current.runs)),
            without_skill=counts_of(without) if without else None,
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
        skill_digest=pairs[0][0].skill_digest,
        cases=tuple(sorted(cases, key=lambda case: case.id)),
    )


def _incomplete_reason(cell: Cell) -> str:
    """Return why a cell is too incomplete for a baseline, empty if it is complete."""
    if len(cell.trials) != cell.planned:
        return f"{len(cell.trials)} of {cell.planned} trials ran: run all of them"
    if cell.missing:
        are = "is" if cell.missing == 1 else "are"
        return f"{cell.missing} of its runs {are} missing: run again, recorded answers cost nothing"
    if cell.cut_failures:
        return cell.open_runs
    if any(trial.skipped_runs for trial in cell.trials):
        return "it was stopped early: run without --upskill-early-stop"
    return ""
