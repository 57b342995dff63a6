"""How often a model chooses the skill of a cell, and instead of what."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from pytest_upskill.figures.trial_group import TrialGroup
from pytest_upskill.project.messages import counted
from pytest_upskill.stats import Estimate
from pytest_upskill.stats.triggers import QueryCounts, query_interval, query_rate, trigger_precision
from pytest_upskill.trials.result import TrialResult

NO_SKILL = "(no skill)"
"""What is taken where no skill is."""

BY_WORDS = "triggers are not measured on offline, which chooses by words in common"

DESCRIBE = (
    "say in each description when to use the skill and when not to, and how it differs from a "
    "skill that is chosen instead"
)
"""Advice where a wrong skill, or none, was chosen."""

_Hits = tuple[TrialResult, int]
"""A query, and in how many of its valid runs something happened."""


@dataclass(frozen=True)
class Triggers:
    """How often a model chooses a skill, for the queries that are asked of it."""

    cell: TrialGroup

    @cached_property
    def recall(self) -> Estimate | None:
        """Share of the queries that should trigger the skill for which a right one is chosen."""
        return _rate(self._hits(wanted=True, right=True))

    @cached_property
    def false_triggers(self) -> Estimate | None:
        """Share of the other queries for which the skill is chosen by mistake."""
        return _rate(self._hits(wanted=False))

    @cached_property
    def precision(self) -> float | None:
        """Share of the skill's triggers that are wanted; None if it is never taken."""
        wanted, unwanted = self._hits(wanted=True), self._hits(wanted=False)
        return trigger_precision(_counts(wanted), _counts(unwanted))

    @property
    def queries(self) -> int:
        """Number of queries with a valid run."""
        return sum(bool(trial.runs) for trial in self.cell.current_trials)

    @property
    def why_undecidable(self) -> str | None:
        """Why no decision about the cell is possible, None if one is."""
        if self.cell.is_by_words:
            return BY_WORDS
        return None if self.queries else "missing data: no query has a valid run"

    @property
    def mistakes(self) -> list[str]:
        """A line about wrong skills, if any was chosen: ``chose tsv instead of csv (3 runs)``."""
        wrong = choices(self.cell.current_trials, only_wrong=True).items()
        by_number = sorted(wrong, key=lambda each: (-each[1], each[0]))
        mistakes = [f"{_mistake(*pair)} ({counted(runs, 'run')})" for pair, runs in by_number]
        return ["; ".join(mistakes)] if mistakes else []

    def recall_if(self, hit: bool) -> float | None:
        """Return the recall if all open runs had chosen a right skill, or if none had."""
        return _rate_if(self._hits(wanted=True, right=True), hit)

    def false_if(self, hit: bool) -> float | None:
        """Return the rate of false triggers if all open runs were such, or if none was."""
        return _rate_if(self._hits(wanted=False), hit)

    def _hits(self, *, wanted: bool, right: bool = False) -> list[_Hits]:
        """Return how often each query that should trigger the skill, or should not, took it.

        Args:
            wanted: Whether the queries should trigger it.
            right: Whether any right choice is one, such as of another skill that may be taken.
        """
        return [
            (trial, trial.passes if right else _times_taken(trial))
            for trial in self.cell.current_trials
            if trial.trigger and trial.trigger.should is wanted
        ]


def lost_queries(cells: Iterable[TrialGroup]) -> list[str]:
    """Return which skill lost how many queries to which: ``csv lost 2 queries to tsv``."""
    trials = ((cell, trial) for cell in cells for trial in cell.current_trials if cell.chooses)
    failed = {(cell.path, trial.case): trial for cell, trial in trials if trial.failed}
    commonest = (choices([each], only_wrong=True).most_common(1) for each in failed.values())
    numbers = Counter(choice for ((choice, _),) in filter(None, commonest))
    return [_loss(*choice, number) for choice, number in numbers.most_common()]


def _loss(wanted: str, taken: str, number: int) -> str:
    queries = counted(number, "query", "queries")
    if wanted in {NO_SKILL, f"(not {taken})"}:
        return f"{taken} took {queries} that it should not"
    return f"{wanted} lost {queries} to {'no skill' if taken == NO_SKILL else taken}"


def choices(trials: Iterable[TrialResult], *, only_wrong: bool) -> Counter[tuple[str, str]]:
    """Return in how many runs which skill was wanted and which one, or none, was taken."""
    return Counter(
        (_wanted(trial), run.choice.taken or NO_SKILL)
        for trial in trials
        for run in trial.runs
        if run.choice is not None and not (only_wrong and run.passed)
    )


def _wanted(trial: TrialResult) -> str:
    """Return what a query should trigger, as a row of the confusion matrix."""
    trigger = trial.trigger
    if trigger is None or trigger.should:
        return trial.listed_as
    if trigger.others:
        return " or ".join(trigger.others)
    return NO_SKILL if trigger.nothing else f"(not {trial.listed_as})"


def _mistake(wanted: str, taken: str) -> str:
    """Return a wrong choice in words."""
    if wanted == f"(not {taken})":
        return f"chose {taken} where it should not"
    chosen, right = ("no skill" if name == NO_SKILL else name for name in (taken, wanted))
    return f"chose {chosen} instead of {right}"


def _times_taken(trial: TrialResult) -> int:
    return sum(run.choice is not None and run.choice.taken == trial.listed_as for run in trial.runs)


def _counts(queries: Iterable[_Hits]) -> list[QueryCounts]:
    return [QueryCounts(hits, len(trial.runs)) for trial, hits in queries]


def _rate(queries: Sequence[_Hits]) -> Estimate | None:
    counts = _counts(queries)
    estimate, interval = query_rate(counts), query_interval(counts)
    return None if estimate is None or interval is None else Estimate(estimate, *interval)


def _rate_if(queries: Sequence[_Hits], hit: bool) -> float | None:
    """Return the rate if all open runs count as hits, or if none does."""
    return query_rate(
        [
            QueryCounts(
                hits + hit * (trial.cut_failures + len(trial.errors)),
                len(trial.runs) + len(trial.errors),
            )
            for trial, hits in queries
        ]
    )
