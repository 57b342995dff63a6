"""Baseline files: what a skill's cases came to on a model, made to be committed and reviewed."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

from pytest_upskill.whole_file import write_whole

FORMAT = 1
"""Version of the file format; readers refuse a newer one."""


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
    """What the cases of one skill came to on one model."""

    skill: str
    model: str
    """Label of the model."""
    path: str
    """Path of the case file from the folder that holds ``.upskill``."""
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


Baselines = Mapping[tuple[str, str], Baseline]
"""By skill and label of the model."""


def baseline_file(folder: Path, skill: str, model: str) -> Path:
    """Name the file of a skill and a model, both as one plain segment of a path."""
    return folder / _segment(skill) / f"{_segment(model)}.json"


def read_baseline(file: Path) -> Baseline | None:
    """Read a baseline, None where there is none.

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
        return _baseline(value)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise BaselineError(f"{file}: cannot be read: {error.strerror}: mend or move it") from None
    except (ValueError, LookupError, TypeError):
        raise BaselineError(
            f"{file}: not a baseline: restore it from git, or delete it and record one with "
            "--upskill-baseline-update"
        ) from None


def read_baselines(folder: Path, models: Collection[str]) -> Baselines:
    """Read the baselines of every skill on the models of these labels.

    Raises:
        BaselineError: One of them cannot be used.
    """
    names = {f"{_segment(model)}.json" for model in models}
    files = (file for file in sorted(folder.glob("*/*.json")) if file.name in names)
    found = [baseline for file in files if (baseline := read_baseline(file)) is not None]
    return {(baseline.skill, baseline.model): baseline for baseline in found}


def write_baseline(file: Path, baseline: Baseline) -> bool:
    """Write a baseline, at once or not at all; one that only the date would change is left.

    Returns:
        Whether there was anything to write.

    Raises:
        BaselineError: What is there is not a baseline that this version reads: it is kept.
        OSError: The disk refuses it.
    """
    old = read_baseline(file)
    if old and replace(baseline, date=old.date, version=old.version) == old:
        return False
    write_whole(file, _text(baseline).encode(), mode=0o644)
    return True


def _segment(name: str) -> str:
    quoted = quote(name, safe=" ")
    return f"%2E{quoted[1:]}" if quoted.startswith(".") else quoted


def _text(baseline: Baseline) -> str:
    """Write one line for the head's every entry and for each case: small diffs, local conflicts."""
    head = {
        "format": FORMAT,
        "skill": baseline.skill,
        "model": baseline.model,
        "path": baseline.path,
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


def _baseline(value: Mapping[str, Any]) -> Baseline:
    return Baseline(
        skill=str(value["skill"]),
        model=str(value["model"]),
        path=str(value["path"]),
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
