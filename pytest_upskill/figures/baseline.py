"""Baselines: files to be committed and reviewed, which belongs to which cell, and their update."""

from __future__ import annotations

import json
import posixpath
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, unquote

from pydantic_core import from_json

from pytest_upskill.figures.cell import Cell
from pytest_upskill.figures.trial_group import TrialGroup
from pytest_upskill.figures.trigger_cell import TriggerCell
from pytest_upskill.project.files import read_state, write_file
from pytest_upskill.trials.result import TrialResult

FORMAT = 1
"""Version of the file format; newer ones cannot be read."""

_HEAD = ("format", "skill", "model", "resolved", "served", "date", "version", "skill_digest")
"""What a file contains besides cases, in this order."""


class BaselineError(Exception):
    """A baseline file cannot be used; the message has its name and the cure."""


_MAX_RUNS = 1000
"""Maximum number of runs of a case: a test of a million takes hours."""


@dataclass(frozen=True, slots=True)
class ArmCounts:
    """Passes and valid runs of one case in one arm.

    Raises:
        ValueError: There is no run or too many, there are more passes than runs, or a count is not
            an integer.
    """

    passes: int
    runs: int

    def __post_init__(self) -> None:
        whole = all(type(count) is int for count in (self.passes, self.runs))
        if not whole or not 0 <= self.passes <= self.runs or not 1 <= self.runs <= _MAX_RUNS:
            raise ValueError(f"{self.passes!r} passes of {self.runs!r} runs")

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
    without_skill: ArmCounts | None
    """None of a query, as a model then chooses among all skills."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """Results of the cases of one case file on one model."""

    format: int = FORMAT
    skill: str
    model: str
    """Label of the model."""
    case_file: str
    """Path from the folder that holds ``.upskill``, with slashes."""
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


def read_baseline(file: Path, case_file: str) -> Baseline | None:
    """Read a baseline file and return the baseline, None if the file does not exist.

    Args:
        file: Path of the baseline file.
        case_file: Path of the case file according to the baseline's path.

    Raises:
        BaselineError: The file cannot be read, is not a baseline, or has a newer format.
    """
    try:
        value = from_json(read_state(file))
        if type(value["format"]) is int and value["format"] > FORMAT:
            raise BaselineError(
                f"{file}: format {value['format']} is newer than this pytest-upskill reads "
                f"({FORMAT}): pip install -U pytest-upskill"
            )
        return _baseline(value, case_file)
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

    Args:
        file: Path of the baseline file.
        baseline: The baseline.

    Returns:
        Whether the file was written.

    Raises:
        BaselineError: This version cannot read the existing file; it is not overwritten.
        OSError: The file cannot be written.
    """
    old = read_baseline(file, baseline.case_file)
    if old and replace(baseline, date=old.date, version=old.version) == old:
        return False
    write_file(file, _text(baseline).encode(), mode=0o644)
    return True


def _text(baseline: Baseline) -> str:
    """Return JSON with a line for each field and case, which keeps diffs and conflicts small."""
    lines = [f" {_json(name)}: {_json(getattr(baseline, name))},\n" for name in _HEAD]
    cases = ",\n".join(f"  {_json(_case_fields(case))}" for case in baseline.cases)
    return "{\n" + "".join(lines) + ' "cases": [\n' + cases + "\n ]\n}\n"


def _case_fields(case: BaselineCase) -> dict[str, object]:
    value = {"id": case.id, "digest": case.digest, "grader": case.grader}
    arms = {"with": case.with_skill, "without": case.without_skill}
    return value | {name: astuple(tally) for name, tally in arms.items() if tally}


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _baseline(value: Mapping[str, Any], case_file: str) -> Baseline:
    return Baseline(
        format=int(value["format"]),
        skill=str(value["skill"]),
        model=str(value["model"]),
        case_file=case_file,
        resolved=str(value["resolved"]),
        served=tuple(map(str, value["served"])),
        date=str(value["date"]),
        version=str(value["version"]),
        skill_digest=str(value["skill_digest"]),
        cases=tuple(
            BaselineCase(
                id=str(case["id"]),
                digest=str(case["digest"]),
                grader=str(case["grader"]),
                with_skill=ArmCounts(*case["with"]),
                without_skill=ArmCounts(*case["without"]) if "without" in case else None,
            )
            for case in value["cases"]
        ),
    )


class BaselineKey(NamedTuple):
    """Key of a cell's baseline."""

    case_file: str
    """Path from the folder that holds ``.upskill``, with slashes."""
    skill: str
    model: str
    """Label of the model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredBaseline:
    """A baseline and its file."""

    file: Path
    baseline: Baseline
    moved: bool
    """Whether its case file no longer exists at the recorded path."""

    @property
    def key(self) -> BaselineKey:
        """Key of the cell that was recorded."""
        baseline = self.baseline
        return BaselineKey(baseline.case_file, baseline.skill, baseline.model)


@dataclass(frozen=True, slots=True)
class Baselines:
    """The stored baselines of the chosen models."""

    stored: tuple[StoredBaseline, ...] = ()

    def of(self, keys: Sequence[BaselineKey]) -> list[Baseline | None]:
        """Return the baseline of each cell, None for a cell without one.

        A baseline with the same case file and model belongs to the cell. If there is none, the
        skill may have been moved: then a baseline with the same file name, skill and model belongs
        to it, if its case file no longer exists. With several such baselines or cells there is
        no match.

        Args:
            keys: Keys of all cells of the session.
        """
        return [stored.baseline if stored else None for stored in self._find_all(keys)]

    def unused(self, used: Sequence[BaselineKey]) -> Iterator[tuple[StoredBaseline, str]]:
        """Yield the files that can be deleted, each with the reason.

        Args:
            used: Keys of all measured cells.
        """
        used_files = [stored.file for stored in self._find_all(used) if stored]
        for stored in self.stored:
            best = self._best_match(stored.key)
            if best is not None and best.file != stored.file:
                yield stored, f"{best.file} replaces it"
            elif stored.moved and stored.file not in used_files:
                yield stored, f"{stored.key.case_file} is gone"

    def _find_all(self, keys: Sequence[BaselineKey]) -> list[StoredBaseline | None]:
        """Return the file of each key; a moved one only if no other key could claim it."""
        matches = {key: self._best_match(key) for key in keys}
        claims = Counter(_without_folder(key) for key in keys if matches[key] is None)
        return [
            matches[key] or (self._find_moved(key) if claims[_without_folder(key)] == 1 else None)
            for key in keys
        ]

    def _find_moved(self, key: BaselineKey) -> StoredBaseline | None:
        """Return the file whose case file has moved to that of the key; None if several may."""
        moved = [
            stored
            for stored in self.stored
            if stored.moved and _without_folder(stored.key) == _without_folder(key)
        ]
        if len({stored.key.case_file for stored in moved}) != 1:
            return None
        return self._best_match(moved[0].key)

    def _best_match(self, key: BaselineKey) -> StoredBaseline | None:
        """Return the file of a key; of several, by same skill, newest date."""
        matches = [
            stored
            for stored in self.stored
            if (stored.key.case_file, stored.key.model) == (key.case_file, key.model)
        ]
        return max(
            matches,
            key=lambda stored: (
                stored.key.skill == key.skill,
                stored.baseline.date,
            ),
            default=None,
        )


def key_of(cell: TrialGroup) -> BaselineKey:
    """Return the key of a cell's baseline."""
    return BaselineKey(cell.case_file or cell.path, cell.skill, cell.model)


def baseline_file(folder: Path, case_file: str, model: str) -> Path:
    """Return the path of a baseline file: below ``folder``, the same path as the case file's.

    Args:
        folder: Folder of the baseline files.
        case_file: Path of the case file from the folder that contains ``.upskill``, with slashes.
        model: Label of the model.
    """
    return folder.joinpath(*map(_part, case_file.split("/")), _name(model))


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
    names = {_name(model) for model in models}
    files = [file for file in sorted(folder.rglob("*.json")) if file.name in names]
    return Baselines(tuple(_stored(folder, project, files)))


def _stored(folder: Path, project: Path | None, files: Iterable[Path]) -> Iterator[StoredBaseline]:
    for file in files:
        case_file = "/".join(map(unquote, file.parent.relative_to(folder).parts))
        # The folder of a case file may have the name of a baseline file.
        baseline = None if file.is_dir() else read_baseline(file, case_file)
        if baseline is not None:
            has_moved = (
                project is not None
                and not (project / baseline.case_file.partition("::")[0]).exists()
            )
            yield StoredBaseline(file=file, baseline=baseline, moved=has_moved)


def _part(name: str) -> str:
    """Return a path component escaped so that it cannot leave the folder; `unquote` reverts it."""
    return "%2E%2E" if name == ".." else name.replace("%", "%25")


def _name(model: str) -> str:
    quoted = quote(model, safe=" ")
    return f"%2E{quoted[1:]}.json" if quoted.startswith(".") else f"{quoted}.json"


def _without_folder(key: BaselineKey) -> tuple[str, str, str]:
    return posixpath.basename(key.case_file), key.skill, key.model


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


def update_baselines(
    cells: Sequence[Cell | TriggerCell],
    folder: Path,
    *,
    runs: Mapping[str, int],
    what: str = "baseline",
) -> list[Update]:
    """Write the baseline of every complete cell, and return the outcome for each cell.

    Args:
        cells: All cells of the session, of one kind.
        folder: Folder of the baseline files.
        runs: Number of runs of a complete trial, by label of the model.
        what: What is written, in words.
    """
    return [
        _not_written(cell, reason, what)
        if (reason := _incomplete_reason(cell, runs[cell.model]))
        else _write(cell, folder, what)
        for cell in cells
    ]


def baseline_of(cell: Cell | TriggerCell) -> Baseline:
    """Return the baseline of a cell, dated today."""
    pairs: Sequence[tuple[TrialResult, TrialResult | None]] = (
        cell.pairs.measured
        if isinstance(cell, Cell)
        else [(trial, None) for trial in cell.current_trials]
    )
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
        case_file=key_of(cell).case_file,
        resolved=cell.resolved,
        served=tuple(cell.served),
        date=datetime.now(UTC).date().isoformat(),
        version=version("pytest-upskill"),
        skill_digest=pairs[0][0].skill_digest,
        cases=tuple(sorted(cases, key=lambda case: case.id)),
    )


def _incomplete_reason(cell: TrialGroup, runs: int) -> str:
    """Return why a cell is too incomplete for a baseline, empty if it is complete."""
    if len(cell.trials) != cell.planned:
        return f"{len(cell.trials)} of {cell.planned} trials ran: run all of them"
    if cell.missing:
        are = "is" if cell.missing == 1 else "are"
        return f"{cell.missing} of its runs {are} missing: run again, recorded answers cost nothing"
    if cell.cut_failures:
        return cell.open_runs
    if any(len(trial.runs) != runs for trial in cell.trials):
        return "it was stopped early: run without --upskill-early-stop"
    return ""


def _write(cell: Cell | TriggerCell, folder: Path, what: str) -> Update:
    baseline = baseline_of(cell)
    file = baseline_file(folder, baseline.case_file, baseline.model)
    try:
        written = write_baseline(file, baseline)
    except BaselineError as error:
        return replace(_not_written(cell, str(error), what), refused=True)
    except OSError as error:
        reason = f"cannot write {file}: {error.strerror}"
        return replace(_not_written(cell, reason, what), refused=True)
    done = "written, commit it" if written else "is up to date"
    return Update(text=f"{what} of {cell.skill} on {cell.model}: {file} {done}")


def _not_written(cell: TrialGroup, reason: str, what: str) -> Update:
    return Update(text=f"no {what} written of {cell.skill} on {cell.model}: {reason}")
