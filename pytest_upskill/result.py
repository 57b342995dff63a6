"""What came of the trials: values, which go from process to process as JSON."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from pytest_upskill.checks import CheckResult
from pytest_upskill.completion import Completion
from pytest_upskill.skill import GateRule
from pytest_upskill.trial import Arm

_STOPPED = {
    "max_tokens": "the answer was cut at the output limit: raise --upskill-max-tokens",
    "refusal": "the model refused to answer",
}


NO_JUDGE = "only has statements for a judge; add --upskill-judge MODEL"
"""Why a case is skipped that no program can decide about, where nobody else is to."""

_LONGEST_NAME = 40
_MOST_NAMES = 3

_QUOTED = re.compile(r"'[^']*'")
_MOST_REASONS = 3
"""Reasons for skipping that one line names."""


def _instead_of_answer(completion: Completion) -> str:
    """Describe what came in the place of an answer."""
    if completion.stop_reason == "max_tokens":
        if completion.reasoning:
            return "the reasoning took the whole output limit: raise --upskill-max-tokens"
        return _STOPPED["max_tokens"]
    if completion.tool_calls:
        names = ", ".join(name[:_LONGEST_NAME] for name in completion.tool_calls[:_MOST_NAMES])
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
    """What a judge said of it; its tokens and cost are not the answer's."""
    cut: int = 0
    """Characters at the end of the answer that a report left out."""

    @property
    def stopped(self) -> str | None:
        """Why the answer cannot count as whole, None where it can."""
        if not self.completion.text.strip() and self.completion.stop_reason != "refusal":
            return _instead_of_answer(self.completion)
        return _STOPPED.get(self.completion.stop_reason)

    @property
    def passed(self) -> bool:
        """Whether every check held in a whole answer."""
        return self.stopped is None and all(check.passed for check in self.checks)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialResult:
    """All runs of one case on one model in one arm."""

    skill: str
    case: str
    model: str
    """Label of the model."""
    resolved: str
    """What the label stands for."""
    arm: Arm
    min_pass_rate: float
    prompt_digest: str
    """Of what every arm of the case was sent alike."""
    skill_digest: str
    """Of the skill block, empty without one."""
    runs: tuple[RunResult, ...]
    """The valid runs."""
    planned: int = 1
    """Runs there were to be."""
    early_stop: bool = False
    """Whether the verdict was looked at after every round, to leave out the rest once clear."""
    grader_digest: str = ""
    """Of the case's checks."""
    errors: tuple[str, ...] = ()
    """One line for each run that gave no usable reply: missing data, never a failure."""
    question: str = ""
    """What the case asks, without its files."""
    line: int = 1
    """Line of the case in its file, from 1."""
    ungraded: int = 0
    """Statements of the case that no judge looked at: neither held nor failed."""
    agent_statements: int = 0
    """Statements that were judged though they look as if only an agent could satisfy them."""

    @property
    def spared(self) -> int:
        """Runs that were left out because the verdict was clear."""
        return self.planned - len(self.runs) - len(self.errors)

    @property
    def passes(self) -> int:
        """Valid runs in which every check held."""
        return sum(run.passed for run in self.runs)

    @property
    def passed(self) -> bool:
        """Whether enough of the valid runs passed."""
        return bool(self.runs) and self._enough(self.passes, len(self.runs))

    @property
    def served(self) -> list[str]:
        """Model ids that the API returned."""
        return sorted({name for run in self.runs if (name := run.completion.served_model)})

    @property
    def settled(self) -> bool:
        """Whether the trial would end the same, whatever the missing runs had brought.

        One that is only compared with never fails: a single valid run settles it.
        """
        if self.arm != "with_skill":
            return bool(self.runs)
        passes, missing = self.passes, len(self.errors)
        planned = len(self.runs) + missing
        best, worst = self._enough(passes + missing, planned), self._enough(passes, planned)
        return bool(self.runs) and best == worst

    def _enough(self, passes: int, runs: int) -> bool:
        # Exact at the border: 0.1 + 0.2 must not fail a case.
        return passes >= self.min_pass_rate * runs - 1e-9


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class SkippedCase:
    """A case about which no model was asked."""

    case: str
    reason: str
    """One line."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Unmeasured:
    """A skill on a model of which every trial was skipped."""

    path: str
    """Node id of the case file."""
    skill: str
    model: str
    """Label of the model."""
    cases: tuple[SkippedCase, ...] = ()
    """Every case, and why it was skipped."""

    def __str__(self) -> str:
        text = f"{self.skill} on {self.model}: not measured, as every case was skipped"
        reasons = skip_reasons(skipped.reason for skipped in self.cases)
        return f"{text}: {reasons}" if reasons else text


def skip_reasons(reasons: Iterable[str]) -> str:
    """Return the most frequent reasons in one line, such as ``3 cases: needs gcc``.

    Reasons that differ only in what they quote are counted together.

    Args:
        reasons: One for each skipped case.
    """
    alike: defaultdict[str, list[str]] = defaultdict(list)
    for reason in reasons:
        alike[_QUOTED.sub("", reason)].append(reason)
    groups = sorted(alike.values(), key=len, reverse=True)
    parts = [_counted(group) for group in groups[:_MOST_REASONS]]
    if rest := sum(map(len, groups[_MOST_REASONS:])):
        parts.append(f"{_cases(rest)} for other reasons; -rs lists them")
    return "; ".join(parts)


def _counted(reasons: list[str]) -> str:
    count, first = len(reasons), reasons[0]
    if first == NO_JUDGE:
        return f"{_cases(count)} {first if count == 1 else first.replace('has', 'have', 1)}"
    return f"{_cases(count)}: {first}{' and the like' if len(set(reasons)) > 1 else ''}"


def _cases(count: int) -> str:
    return "1 case" if count == 1 else f"{count} cases"


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialRecord:
    """A result with its place in the run: what a report carries to the ledger."""

    path: str
    """Node id of the case file."""
    index: int
    """Place among the trials of the file."""
    planned: int
    """Trials of the same cell in a whole run."""
    gate: GateRule
    """Thresholds of the case file."""
    ref: str
    """Git ref whose skill is compared with; empty for none."""
    history: str
    """Why that is not done; empty where it is."""
    past_unknown: bool
    """Whether it should have been done."""
    result: TrialResult
