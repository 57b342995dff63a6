"""The report as a value: sessions, and every cell with its gate."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from pytest_upskill.figures.gate import Gate
from pytest_upskill.project.git import Revision
from pytest_upskill.trials.result import RunResult, TrialResult, Unmeasured

MARKER = "<!-- pytest-upskill -->"
"""First line of Markdown, by which a bot finds the comment to update."""

ANSWER_LIMIT = 65_536
"""Characters of an answer that a report keeps."""

Option = str | int | float | bool | list[str] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """One pytest session whose results a report contains; a merged report has several."""

    date: datetime
    """End of the session, in UTC."""
    versions: Mapping[str, str]
    """Versions of pytest-upskill, pytest and Python."""
    models: Mapping[str, str]
    """Full model name by label, without credentials."""
    options: Mapping[str, Option]
    """Options that the results depend on."""
    complete: bool
    """Whether the session was not stopped early and all files could be read."""
    other_tests: int = 0
    """Number of tests that ran besides trials and gates."""
    other_failures: int = 0
    """Number of failures besides those of trials and gates."""
    unreadable: tuple[str, ...] = ()
    """What is wrong with the files that could not be read, one line each: the path comes first."""
    without_trials: tuple[str, ...] = ()
    """Which skills of a pull request have no trials: they lack cases, or were deleted."""
    without_cases: int = 0
    """Number of changed skills of a pull request that have no cases, or some that did not run."""
    not_measured: tuple[str, ...] = ()
    """What else prevents a complete result: what a pull request deleted, a limit of cost."""
    skipped: tuple[str, ...] = ()
    """Why cases were skipped, and how many, one line for each reason."""
    nothing_changed: str = ""
    """Why there was nothing to run, as every skill is unchanged; empty if there was."""
    sandbox: str | None = None
    """Sandbox level of the compilers; None if none ran."""
    warnings: tuple[str, ...] = ()
    """Warnings about files, one line each: the path comes first."""
    unmeasured: tuple[Unmeasured, ...] = ()
    """Skills on models of which every trial was skipped."""
    recordings: tuple[str, ...] = ()
    """A line about the recordings of a replay that the branch changed, if it changed some."""
    revision: Revision | None = None
    """What was checked out; None outside a git repository."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """All data of the report files."""

    sessions: tuple[Session, ...]
    gates: tuple[Gate, ...]
    """A decision for each cell, in the order of case files and chosen models, lifts first."""

    @property
    def is_replay(self) -> bool:
        """Whether a session replayed, so that every run must have a recording."""
        return any(session.options.get("cache") == "replay" for session in self.sessions)

    @property
    def trials(self) -> list[TrialResult]:
        """All trials."""
        return [trial for gate in self.gates for trial in gate.cell.trials]

    @property
    def lifts(self) -> list[Gate]:
        """Gates of the cells that measure a lift."""
        return [gate for gate in self.gates if not gate.cell.chooses]

    @property
    def triggers(self) -> list[Gate]:
        """Gates of the cells that measure how often a model chooses a skill."""
        return [gate for gate in self.gates if gate.cell.chooses and not gate.cell.is_by_words]

    @property
    def failed_gates(self) -> list[Gate]:
        """The gates that failed."""
        return [gate for gate in self.gates if gate.outcome == "failed"]

    @property
    def failed_cases(self) -> list[tuple[Gate, TrialResult]]:
        """Cases and queries that failed with the skill, each with the gate of its cell."""
        return [
            (gate, trial)
            for gate in self.gates
            for trial in gate.cell.current_trials
            if trial.failed
        ]

    @property
    def unmeasured_skills(self) -> list[Unmeasured]:
        """Skills on models that no session measured; choices do not tell how a model answers."""
        keys = [
            {(gate.cell.path, gate.cell.skill, gate.cell.model) for gate in gates}
            for gates in (self.lifts, self.gates)
        ]
        return [
            each
            for session in self.sessions
            for each in session.unmeasured
            if (each.path, each.skill, each.model) not in keys[each.chooses]
        ]


def runs_of(gates: Iterable[Gate]) -> Iterator[RunResult]:
    """Return an iterator over all valid runs of the gates' cells."""
    return (run for gate in gates for trial in gate.cell.trials for run in trial.runs)
