"""Baseline files: results of a skill's cases on a model, to be committed and reviewed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import astuple, dataclass, replace
from pathlib import Path
from typing import Any

from pydantic_core import from_json

from pytest_upskill.repository.files import read_state, write_file

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
