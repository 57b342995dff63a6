"""The trials of a cell: how many there are, which count, and which are of one arm."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from pytest_upskill.cases.skill import GateRule
from pytest_upskill.models.model import is_language_model
from pytest_upskill.project.messages import counted
from pytest_upskill.trials.result import CellKey, CellLabels, RunResult, TrialResult
from pytest_upskill.trials.trial import TRIGGER_ARMS, Arm

ARM_NAMES: Mapping[Arm, str] = {
    "with_skill": "with the skill",
    "without_skill": "without the skill",
    "old_skill": "with the skill as it was",
    "trigger": "to queries",
    "old_trigger": "to queries with the old descriptions",
}

CURE_OF_CUTS = "raise --upskill-max-tokens"


@dataclass(frozen=True, kw_only=True)
class TrialGroup:
    """The trials of one skill on one model."""

    path: str
    """Path of the case file from the rootdir, with which the node ids of its gates begin."""
    case_file: str = ""
    """Path of the case file from the folder that contains ``.upskill``; empty if it is ``path``."""
    skill: str
    model: str
    """Label of the model."""
    resolved: str
    """Full name of the model."""
    place: str = ""
    """Its path, where another skill has the same name; empty if the name is unique."""
    gate: GateRule
    planned: int
    """Number of trials of the cell if all run."""
    trials: tuple[TrialResult, ...]
    ref: str = ""
    """Git ref whose version of the skill is compared; empty for none."""
    history: str = ""
    """Why there is no comparison with ``ref``; empty if there is one."""
    past_unknown: bool = False
    """Whether a comparison is missing that should exist."""
    case_changes: str = ""
    """Which cases were removed or changed since ``ref``, in words; empty for none."""
    other_cases: tuple[str, ...] = ()
    """Cases that are new since ``ref``, or changed in what they ask or expect."""
    skipped: tuple[str, ...] = ()
    """Cases that did not run, or not in every arm."""
    at_k: int = 0
    """The k for which pass@k and pass^k are reported; 0 for none."""
    judge: str = ""
    """Full name of the judge; empty for none."""
    labels: CellLabels | None = None
    """Labels of answers that apply to this cell; None without a labels file."""

    @property
    def history_clause(self) -> str:
        """What follows the reason of a failed case where there is no comparison."""
        return f"; its skill: {self.history}" if self.history else ""

    @property
    def key(self) -> CellKey:
        """What tells it from the other cells of a session."""
        return CellKey(self.path, self.skill, self.model, self.chooses)

    @cached_property
    def chooses(self) -> bool:
        """Whether a model chooses among skills; otherwise they are in its context or not."""
        return any(trial.arm in TRIGGER_ARMS for trial in self.trials)

    @property
    def version_arms(self) -> tuple[Arm, Arm]:
        """The arm with the current skill, and the arm with the old one."""
        return ("trigger", "old_trigger") if self.chooses else ("with_skill", "old_skill")

    @property
    def is_offline(self) -> bool:
        """Whether ``offline`` answered, which is no model."""
        return not is_language_model(self.resolved)

    @property
    def is_by_words(self) -> bool:
        """Whether ``offline`` chose among skills, by words in common: that measures nothing."""
        return self.chooses and self.is_offline

    @cached_property
    def copied(self) -> bool:
        """Whether the model gave one answer in all runs, two or more, of every trial."""
        ran = [trial for trial in self.trials if trial.runs]
        repeated = any(len(trial.runs) > 1 for trial in ran)
        # The copies of a single answer may be missing; a missing run of an agent is no copy.
        return repeated and all(
            trial.distinct == 1
            and (len(trial.runs) > 1 or (trial.errors and not trial.runs[0].completion.agent_run))
            for trial in ran
        )

    @cached_property
    def counted_trials(self) -> tuple[TrialResult, ...]:
        """The trials with the runs that count: one each if the others are copies of it."""
        if not self.copied:
            return self.trials
        return tuple(
            replace(
                trial, runs=trial.runs[:1], errors=() if trial.runs else trial.errors[:1], planned=1
            )
            for trial in self.trials
        )

    @cached_property
    def current_trials(self) -> list[TrialResult]:
        """Trials with the current skill."""
        return [trial for trial in self.counted_trials if trial.arm == self.version_arms[0]]

    @cached_property
    def old_trials(self) -> list[TrialResult]:
        """Trials with the skill at the git ref."""
        return [trial for trial in self.counted_trials if trial.arm == self.version_arms[1]]

    @cached_property
    def failed_cases(self) -> list[str]:
        """Cases that fail with the current skill, as too few of their runs passed."""
        return [trial.case for trial in self.current_trials if trial.failed]

    @property
    def excused_cases(self) -> list[str]:
        """Cases that would fail with the current skill but for a mark such as ``xfail``."""
        return [trial.case for trial in self.current_trials if trial.excused]

    @property
    def title(self) -> str:
        """Name of the skill, with its path if another skill has the same name."""
        return f"{self.skill} ({self.place})" if self.place else self.skill

    @property
    def name(self) -> str:
        """Skill and model, as the subject of a sentence."""
        return f"{self.title} on {self.model}"

    def count(self, number: int) -> str:
        """Return a number of its cases, ``2 cases``, or of queries."""
        return counted(number, "query", "queries") if self.chooses else counted(number, "case")

    @property
    def failed_text(self) -> str:
        """How many cases failed: ``2 cases failed``; empty for none."""
        return f"{self.count(len(self.failed_cases))} failed" if self.failed_cases else ""

    @property
    def cases_not_run(self) -> list[str]:
        """Cases that ran in no arm."""
        return sorted({*self.skipped} - {trial.case for trial in self.trials})

    @property
    def measured_cases(self) -> set[str]:
        """Cases with a valid run in every arm but that of the old skill."""
        _, old = self.version_arms
        arms = {trial.arm for trial in self.trials} - {old}
        measured = ({t.case for t in self.trials if t.arm == arm and t.runs} for arm in arms)
        return set.intersection(*measured) if arms else set()

    @property
    def missing(self) -> int:
        """Number of runs without a usable reply, in all arms."""
        return sum(len(trial.errors) for trial in self.counted_trials)

    @property
    def ungraded(self) -> int:
        """Number of statements that there is no judge for."""
        return sum({trial.case: trial.ungraded for trial in self.trials}.values())

    @property
    def cut_failures(self) -> int:
        """Number of runs that failed with an answer cut at the output limit, in all arms."""
        return sum(trial.cut_failures for trial in self.counted_trials)

    @property
    def open_runs(self) -> str:
        """How many runs have no known result, in words; empty for none.

        A missing run, and one that failed with a cut answer, could have passed. A decision stands
        if it is the same whether all of them pass or fail, and is not made otherwise.
        """
        parts = [counted(self.missing, "missing run")] if self.missing else []
        if self.cut_failures:
            parts.append(f"{counted(self.cut_failures, 'cut answer')} ({CURE_OF_CUTS})")
        return " and ".join(parts)

    @cached_property
    def answers(self) -> Mapping[Arm, Sequence[RunResult]]:
        """The valid runs of each arm that has any."""
        return {
            arm: runs
            for arm in dict.fromkeys(trial.arm for trial in self.trials)
            if (runs := [run for trial in self.trials if trial.arm == arm for run in trial.runs])
        }

    @cached_property
    def served(self) -> list[str]:
        """Model ids that the API returned."""
        return sorted({name for trial in self.trials for name in trial.served})
