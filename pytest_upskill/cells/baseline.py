"""Baseline files: what a skill's cases came to on a model, made to be committed and reviewed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pytest_upskill.atomic_write import write_whole

FORMAT = 2
"""Version of the file format; older ones are read, a newer one is refused.

Format 1 named its file after the skill and the path of the case file inside, and the digests of its
graders did not distinguish ``0``, ``false``, ``null`` and ``""``. Format 2 mirrors the path of the
case file in its own.
"""


class BaselineError(Exception):
    """A baseline file that cannot be used; the message names it and the cure."""


@dataclass(frozen=True, slots=True)
class Tally:
    """How many of an arm's runs passed.

    Raises:
        ValueError: There is no run, or there are more passes than runs.
    """

    passes: int
    runs: int

    def __post_init__(self) -> None:
        whole = all(type(count) is int for count in (self.passes, self.runs))
        if not whole or not 0 <= self.passes <= self.runs or not self.runs:
            raise ValueError(f"{self.passes!r} passes of {self.runs!r} runs")

    def __str__(self) -> str:
        return f"{self.passes}/{self.runs}"


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineCase:
    """What one case came to."""

    id: str
    digest: str
    """Of what the case sends in every arm."""
    grader: str
    """Of its checks."""
    with_skill: Tally
    without_skill: Tally


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """What the cases of one case file came to on one model."""

    format: int = FORMAT
    skill: str
    model: str
    """Label of the model."""
    case_file: str
    """Path from the folder that holds ``.upskill``, with slashes."""
    resolved: str
    """What the label stood for."""
    served: tuple[str, ...]
    """Ids that the API returned."""
    date: str
    """Day of the run, ISO 8601, in UTC."""
    version: str
    """Of this plugin."""
    skill_digest: str
    """Of the skill block."""
    cases: tuple[BaselineCase, ...]
    """In the order of their ids."""


def read_baseline(file: Path, case_file: str) -> Baseline | None:
    """Read a baseline, None where there is none.

    Args:
        file: Where it is.
        case_file: What the file belongs to by its place; one of format 1 says so itself.

    Raises:
        BaselineError: It cannot be read, is no baseline, or is of a newer format.
    """
    try:
        value = json.loads(file.read_text("utf-8"))
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
    """Write a baseline, at once or not at all; one that only the date would change is left.

    Returns:
        Whether there was anything to write.

    Raises:
        BaselineError: What is there belongs to another case file, or is not a baseline that this
            version reads: it is kept.
        OSError: The disk refuses it.
    """
    old = read_baseline(file, baseline.case_file)
    if old and old.case_file != baseline.case_file:
        raise BaselineError(f"{file}: belongs to {old.case_file}: move or delete it")
    if old and replace(baseline, date=old.date, version=old.version) == old:
        return False
    write_whole(file, _text(baseline).encode(), mode=0o644)
    return True


def _text(baseline: Baseline) -> str:
    """Write one line for the head's every entry and for each case: small diffs, local conflicts."""
    head = {
        "format": baseline.format,
        "skill": baseline.skill,
        "model": baseline.model,
        "resolved": baseline.resolved,
        "served": baseline.served,
        "date": baseline.date,
        "version": baseline.version,
        "skill_digest": baseline.skill_digest,
    }
    lines = [f" {_json(key)}: {_json(value)},\n" for key, value in head.items()]
    cases = ",\n".join(
        "  "
        + _json(
            {
                "id": case.id,
                "digest": case.digest,
                "grader": case.grader,
                "with": [case.with_skill.passes, case.with_skill.runs],
                "without": [case.without_skill.passes, case.without_skill.runs],
            }
        )
        for case in baseline.cases
    )
    return "{\n" + "".join(lines) + ' "cases": [\n' + cases + "\n ]\n}\n"


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _baseline(value: Mapping[str, Any], case_file: str) -> Baseline:
    version = int(value["format"])
    return Baseline(
        format=version,
        skill=str(value["skill"]),
        model=str(value["model"]),
        case_file=str(value["path"]) if version == 1 else case_file,
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
                with_skill=Tally(*case["with"]),
                without_skill=Tally(*case["without"]),
            )
            for case in value["cases"]
        ),
    )
