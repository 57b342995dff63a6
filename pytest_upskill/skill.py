"""A skill and its cases, as frozen values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pytest_upskill.checks import AnyCheck, Judge


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One question to a model and the checks its answer must hold."""

    id: str
    """Unique in its file and stable: the ``id`` given, else made of the input, never a position."""
    input: str
    checks: tuple[AnyCheck, ...]
    """In the order of the file; every one must hold."""
    files: Mapping[str, str] = field(default_factory=dict)
    """Name to text, appended to the prompt of every arm alike."""
    min_pass_rate: float | None = None
    """Share of the runs that must pass; None leaves it to the file, then to the option."""
    models: tuple[str, ...] | None = None
    """Labels of the only models this case is for; None for all."""
    tags: tuple[str, ...] = ()
    line: int = 1
    """Line of the case in its file, from 1."""
    skip: str | None = None
    """Why nobody is asked: what the case needs and one answer to one question has not."""

    statement_numbers: tuple[int, ...] = ()
    """Number in the file, from 1, of each statement for a judge among the checks."""

    def __post_init__(self) -> None:
        if not self.statement_numbers:
            count = sum(isinstance(check, Judge) for check in self.checks)
            object.__setattr__(self, "statement_numbers", tuple(range(1, count + 1)))

    def foreign(self, labels: Iterable[str]) -> str | None:
        """Say that the case is for none of the models of these labels, None where it is."""
        if self.models is None or not set(labels).isdisjoint(self.models):
            return None
        return f"it is for {', '.join(self.models)} only: choose one of these with --upskill-models"


@dataclass(frozen=True, slots=True, kw_only=True)
class GateRule:
    """Thresholds of the case file's ``gate``; None leaves one to the options."""

    min_lift: float | None = None
    min_pass_rate: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillVersion:
    """What a model gets of a skill."""

    name: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Skill:
    """A ``SKILL.md`` folder with the cases that tell its worth."""

    name: str
    text: str
    """The text of ``SKILL.md`` as the model gets it."""
    case_file: Path
    cases: tuple[Case, ...]
    folder: Path = Path()
    """Folder of ``SKILL.md``."""
    shares_file: bool = False
    """Whether its case file lies beside several skills, and its cases say which they are for."""
    gate: GateRule = GateRule()
    ref: str = ""
    """Git ref that it is to be compared with; empty for none."""
    before: SkillVersion | None = None
    """What it was there."""
    history: str = ""
    """Why there is nothing to compare with; empty where there is."""
    past_unknown: bool = False
    """Whether there should be: it may have had another name, or cannot be read."""
    warnings: tuple[str, ...] = ()
    """Departures of ``SKILL.md`` from the specification, each ``path:line:column: …``."""
