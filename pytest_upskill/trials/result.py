"""Results of trials and skipped cases, as values that processes exchange as JSON."""

import math
from dataclasses import dataclass
from typing import NamedTuple

from pytest_upskill import LABELS_FILE
from pytest_upskill.cases.skill import Trigger
from pytest_upskill.checks import CheckResult, Judge
from pytest_upskill.models import Completion
from pytest_upskill.models.model import is_language_model
from pytest_upskill.project.messages import listed
from pytest_upskill.trials.trial import Arm
from pytest_upskill.trials.trigger_trial import Choice

_ENDINGS = {
    "max_tokens": "the answer was cut at the output limit: raise --upskill-max-tokens",
    "refusal": "the model refused to answer",
}
_LONGEST_NAME = 40


def _instead_of_answer(completion: Completion) -> str:
    """Return what a reply without an answer contains instead."""
    if completion.stop_reason == "max_tokens" and completion.reasoning:
        return "the reasoning used up the output limit: raise --upskill-max-tokens"
    if completion.stop_reason in _ENDINGS:
        return _ENDINGS[completion.stop_reason]
    if completion.tool_calls:
        names = listed([call.name[:_LONGEST_NAME] for call in completion.tool_calls])
        return f"the model called a tool ({names}) instead of answering"
    if completion.reasoning:
        return "the model wrote only reasoning, and no answer"
    return "the answer is empty"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """One answer with the results of all its checks."""

    completion: Completion
    checks: tuple[CheckResult, ...]
    judgement: Completion | None = None
    """Reply of the judge; its tokens and cost are not part of the answer's."""
    process: tuple[CheckResult, ...] = ()
    """Results on what an agent did, which are reported but never count."""
    left_out: int = 0
    """Number of characters that a report left out at the end of the answer."""
    choice: Choice | None = None
    """Which skill the model took; None where it had no choice."""

    @property
    def why_ungraded(self) -> str | None:
        """Why the run fails whatever its checks say, None if they decide."""
        if self.choice is not None:
            return None
        if run := self.completion.agent_run:
            # An agent may leave files and say nothing.
            return run.limit or None
        return None if self.completion.text.strip() else _instead_of_answer(self.completion)

    @property
    def ending(self) -> str | None:
        """How the answer ended other than by itself, None if it did not."""
        ending = None if self.has_chosen else _ENDINGS.get(self.completion.stop_reason)
        return self.why_ungraded or ending

    @property
    def has_chosen(self) -> bool:
        """Whether the model took a skill, which no later word of the answer would change."""
        return self.choice is not None and self.choice.taken is not None

    @property
    def is_cut(self) -> bool:
        """Whether the answer was cut at the output limit."""
        at_own_limit = self.completion.agent_run is not None and self.completion.agent_run.limit
        is_cut = self.completion.stop_reason == "max_tokens"
        return is_cut and not at_own_limit and not self.has_chosen

    @property
    def refused(self) -> bool:
        """Whether the model refused to answer: that is its answer, and is graded."""
        return self.completion.stop_reason == "refusal" and not self.has_chosen

    @property
    def passed(self) -> bool:
        """Whether there is an answer that passed every check.

        A cut answer cannot show what the whole one would not have contained.
        """
        if self.why_ungraded is not None or not all(check.passed for check in self.checks):
            return False
        shows_absence = self.choice is not None or all(check.is_negative for check in self.checks)
        return not (self.is_cut and shows_absence)

    @property
    def held(self) -> int:
        """Number of checks that passed."""
        return sum(check.passed for check in self.checks)

    @property
    def answer(self) -> tuple[object, ...]:
        """What equals that of another run if one is a copy of the other."""
        # Agents end different work with the same words, and may leave the same files.
        return self.completion.text, self.completion.reasoning, self.completion.agent_run

    @property
    def statements(self) -> list[bool]:
        """What the judge decided of each statement."""
        return [check.passed for check in self.checks if check.name == Judge.name]

    @property
    def by_judge(self) -> bool | None:
        """Whether the run passed by the judge; None if it did not depend on the judge."""
        code = (check.passed for check in self.checks if check.name != Judge.name)
        if self.why_ungraded is not None or not self.statements or not all(code):
            return None
        return self.passed


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialResult:
    """All runs of one case on one model in one arm."""

    skill: str
    case: str
    model: str
    """Label of the model."""
    resolved: str
    """Full name of the model."""
    arm: Arm
    min_pass_rate: float | None
    """Minimum share of runs that pass; None for more than half."""
    prompt_digest: str
    """Digest of the prompt without the skill, the same in every arm."""
    skill_digest: str
    """Digest of the skill block, empty without a skill."""
    runs: tuple[RunResult, ...]
    """Valid runs."""
    planned: int = 1
    """Number of runs of the trial, missing and skipped ones included; 0 if nothing was to check."""
    early_stop: bool = False
    """Whether remaining runs are skipped once the verdict is clear after a round."""
    grader_digest: str = ""
    """Digest of the case's checks."""
    errors: tuple[str, ...] = ()
    """One line for each run without a usable reply: missing data, never a failure."""
    agent: str = ""
    """The agent that used the model, such as ``loop``; empty for single requests."""
    broken: str = ""
    """Why the skill did not reach the agent as installed, in one of the missing runs."""
    train: bool = False
    """Whether the case is left out of the lift, as the skill's text was chosen by it."""
    question: str = ""
    """Input of the case, without its files."""
    line: int = 1
    """Line of the case in its file, from 1."""
    ungraded: int = 0
    """Number of statements that were not judged, and so neither passed nor failed."""
    undecidable: tuple[str, ...] = ()
    """Statements that no answer to the case seems to show, as its judge says: they do not count."""
    statements: tuple[str, ...] = ()
    """Statements that a judge decided."""
    max_tokens: int = 0
    """Maximum output tokens of an answer."""
    least_prompt_tokens: int = 0
    """Tokens that the whole prompt has at least; 0 where the model's agent writes it."""
    case_digest: str = ""
    """Digest of what is asked and what must hold, whoever is the judge."""
    trigger: Trigger | None = None
    """Which skill should be chosen; None where nothing is."""
    excused: bool = False
    """Whether pytest counts no failure of the trial, such as of one that is marked xfail."""
    distinct: int = 0
    """Number of different answers in the valid runs; 0 where a run is never a copy of another."""
    listed_as: str = ""
    """Name of the skill in the catalogue that was shown; empty where none was."""

    @property
    def decides(self) -> bool:
        """Whether the trial fails when too few runs pass; otherwise it only shows what it found."""
        if self.excused:
            return False
        if self.arm == "trigger":
            # Which words a query shares with a description is no choice that a model made.
            return is_language_model(self.resolved)
        return self.arm == "with_skill"

    @property
    def skipped_runs(self) -> int:
        """Number of runs that were skipped because the verdict was clear."""
        return self.planned - len(self.runs) - len(self.errors)

    @property
    def passes(self) -> int:
        """Number of valid runs that passed."""
        return sum(run.passed for run in self.runs)

    @property
    def look(self) -> int:
        """The last look at the verdict that a run with the skill was requested for, 1 without.

        Answers without the skill serve several versions of it, and so looks at several verdicts.
        """
        looks = [run.completion.look for run in self.runs if self.arm == "with_skill"]
        return max((look.number for look in looks if look), default=1)

    @property
    def cut_failures(self) -> int:
        """Number of valid runs that failed with a cut answer."""
        return sum(run.is_cut and not run.passed for run in self.runs)

    def counts_if(self, *, open_pass: bool) -> tuple[int, int]:
        """Return passes and runs if all open runs passed, or if all failed.

        Open are the runs of which the result is not known: missing ones, and cut failures.
        """
        missing = len(self.errors)
        passed = missing + self.cut_failures if open_pass else 0
        return self.passes + passed, len(self.runs) + missing

    @property
    def passed(self) -> bool:
        """Whether enough of the valid runs passed."""
        return bool(self.runs) and self.passes >= self.required_passes(len(self.runs))

    @property
    def served(self) -> list[str]:
        """Model ids that the API returned."""
        return sorted({name for run in self.runs if (name := run.completion.served_model)})

    @property
    def settled(self) -> bool:
        """Whether the missing runs could not change the result.

        A trial that never fails is settled by one valid run.
        """
        if not self.decides:
            return bool(self.runs)
        passes, missing = self.passes, len(self.errors)
        required = self.required_passes(len(self.runs) + missing)
        return bool(self.runs) and (passes >= required or passes + missing < required)

    @property
    def failed(self) -> bool:
        """Whether too few runs passed, whatever the missing ones would have shown."""
        return self.decides and self.settled and not self.passed and not self.left_open

    @property
    def left_open(self) -> bool:
        """Whether an early stop ended the runs while they disagreed, and too few had passed."""
        stopped = self.early_stop and self.skipped_runs > 0
        return stopped and self.passes > 0 and not self.passed

    def required_passes(self, runs: int) -> int:
        """Return how many of so many runs must pass."""
        if self.min_pass_rate is None:
            return runs // 2 + 1
        # The margin keeps rounding errors, such as in 0.1 + 0.2, from failing a case.
        return math.ceil(self.min_pass_rate * runs - 1e-9)


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class AnswerLabel:
    """A person's decision about one answer of a cell that depended on the judge."""

    id: int
    case: str
    with_skill: bool
    judged: bool
    """Whether the answer passed by the judge."""
    passed: bool | None
    """Whether it passes by the label; None if it is not labelled."""
    present: bool
    """Whether the answer is one of this run, and judged as when it was drawn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CellLabels:
    """The labels that apply to a cell."""

    labels: tuple[AnswerLabel, ...] = ()
    problems: tuple[str, ...] = ()
    """Why labels do not apply, one line each."""

    @property
    def given(self) -> list[AnswerLabel]:
        """The labels that somebody has given."""
        return [label for label in self.labels if label.passed is not None]

    @property
    def lines(self) -> list[str]:
        """Why labels do not apply or are not there yet, one line each."""
        lines = list(self.problems)
        if missing := len(self.labels) - len(self.given):
            lines.append(f"{missing} of {len(self.labels)} answers have no label in {LABELS_FILE}")
        return lines


class CellKey(NamedTuple):
    """What tells a cell from all others of the session."""

    path: str
    """Path of the case file from the rootdir; in a file of several skills, with the skill's."""
    skill: str
    model: str
    """Label of the model."""
    chooses: bool
    """Whether the model chooses among skills, as in a trigger cell."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class SkippedCase:
    """A skipped case, for which no request was sent."""

    case: str
    reason: str
    """Reason for skipping, one line."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Unmeasured:
    """A skill on a model with every trial of one measure skipped."""

    path: str
    """Path of the case file from the rootdir."""
    skill: str
    model: str
    """Label of the model."""
    cases: tuple[SkippedCase, ...] = ()
    """Every case with the reason for skipping it."""
    chooses: bool = False
    """Whether the model was to choose among skills; otherwise it was to answer."""
    is_changed: bool = False
    """Whether the skill has changed since the git ref of a pull request, and was not measured by
    another case file."""
