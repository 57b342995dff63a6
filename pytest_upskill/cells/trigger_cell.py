"""A trigger cell, one skill on one model: how often the skill is chosen, and instead of what."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from pytest_upskill import stats
from pytest_upskill.cells.trial_group import TrialGroup
from pytest_upskill.trials.result import TrialResult

NO_SKILL = "(no skill)"
"""What is taken where no skill is."""

BY_WORDS = "offline chooses by words in common: no model decided"


@dataclass(frozen=True, slots=True)
class Rate(stats.Estimate):
    """A mean over queries, with its interval for n = number of queries."""

    queries: int


@dataclass(frozen=True, slots=True, order=True)
class Confusion:
    """How often one skill was wanted and another one, or none, was chosen."""

    wanted: str
    taken: str
    runs: int


@dataclass(frozen=True, kw_only=True)
class TriggerCell(TrialGroup):
    """The trials in which a model chose among skills, for the queries of one skill."""

    arms = ("trigger", "old_trigger")

    @cached_property
    def recall(self) -> Rate | None:
        """Share of the queries that should trigger the skill for which a right one is chosen."""
        return _rate(right_counts(_wanted(self.now)))

    @cached_property
    def false_triggers(self) -> Rate | None:
        """Share of the other queries for which the skill is chosen nevertheless."""
        return _rate(taken_counts(_unwanted(self.now)))

    @cached_property
    def precision(self) -> float | None:
        """Share of the skill's triggers that are wanted; None if it is never taken."""
        return stats.trigger_precision(
            taken_counts(_wanted(self.now)), taken_counts(_unwanted(self.now))
        )

    @property
    def queries(self) -> int:
        """Number of queries with a valid run."""
        return sum(bool(trial.runs) for trial in self.now)

    @cached_property
    def confusions(self) -> tuple[Confusion, ...]:
        """Every pair of wanted and chosen skill, right ones included, in order."""
        counts: Counter[tuple[str, str]] = Counter()
        for trial in self.now:
            for run in trial.runs:
                if run.choice is not None:
                    counts[wanted_of(trial), run.choice.taken or NO_SKILL] += 1
        return tuple(Confusion(*pair, runs) for pair, runs in sorted(counts.items()))

    @cached_property
    def mistakes(self) -> list[Confusion]:
        """Wrong choices, most frequent first."""
        counts: Counter[tuple[str, str]] = Counter()
        for trial in self.now:
            for run in trial.runs:
                if run.choice is not None and not run.passed:
                    counts[wanted_of(trial), run.choice.taken or NO_SKILL] += 1
        found = [Confusion(*pair, runs) for pair, runs in counts.items()]
        return sorted(found, key=lambda each: (-each.runs, each))

    @cached_property
    def recall_bounds(self) -> stats.Interval | None:
        """Recall if all missing runs took a wrong skill, and if all took the right one."""
        return _bounds(_wanted(self.now), right_counts(_wanted(self.now)))

    @cached_property
    def false_trigger_bounds(self) -> stats.Interval | None:
        """False triggers if no missing run took the skill, and if all did."""
        return _bounds(_unwanted(self.now), taken_counts(_unwanted(self.now)))

    @property
    def undecidable(self) -> str | None:
        """Why no decision about the cell is possible, None if one is."""
        if self.by_words:
            return BY_WORDS
        if len(self.trials) != self.planned:
            return f"{len(self.trials)} of {self.planned} trigger trials ran"
        planned = sum(trial.planned for trial in self.now)
        missing = sum(len(trial.errors) for trial in self.now)
        too_many = stats.too_many_missing_of_arm("of triggers", missing, planned)
        return f"missing data: {too_many}" if too_many else None

    @property
    def by_words(self) -> bool:
        """Whether ``offline`` chose, by words in common, and not a model."""
        return self.resolved.startswith("offline:")


def right_counts(trials: Sequence[TrialResult]) -> list[stats.QueryCounts]:
    """Return in how many of its valid runs each query got the right skill."""
    return [stats.QueryCounts(trial.passes, len(trial.runs)) for trial in trials]


def taken_counts(trials: Sequence[TrialResult]) -> list[stats.QueryCounts]:
    """Return in how many of its valid runs each query got the skill of the cell."""
    return [
        stats.QueryCounts(sum(_takes(trial, run.choice) for run in trial.runs), len(trial.runs))
        for trial in trials
    ]


def wanted_of(trial: TrialResult) -> str:
    """Return what a query should trigger, as a row of the confusion matrix."""
    trigger = trial.trigger
    if trigger is None or trigger.should:
        return trial.listed_as
    if trigger.others:
        return " or ".join(trigger.others)
    return NO_SKILL if trigger.nothing else anything_but(trial.listed_as)


def anything_but(skill: str) -> str:
    """Return what is wanted where only one skill would be wrong, as a row of the matrix."""
    return f"(not {skill})"


def _takes(trial: TrialResult, choice: object) -> bool:
    return getattr(choice, "taken", None) == trial.listed_as


def _wanted(trials: Sequence[TrialResult]) -> list[TrialResult]:
    return [trial for trial in trials if trial.trigger is not None and trial.trigger.should]


def _unwanted(trials: Sequence[TrialResult]) -> list[TrialResult]:
    return [trial for trial in trials if trial.trigger is not None and not trial.trigger.should]


def _rate(queries: Sequence[stats.QueryCounts]) -> Rate | None:
    estimate, interval = stats.query_rate(queries), stats.query_interval(queries)
    if estimate is None or interval is None:
        return None
    return Rate(estimate, *interval, sum(bool(query.runs) for query in queries))


def _bounds(
    trials: Sequence[TrialResult], counts: Sequence[stats.QueryCounts]
) -> stats.Interval | None:
    """Return the rate if no missing run counts as a hit, and if all do."""
    low, high = (
        stats.query_rate(
            [
                stats.QueryCounts(
                    count.hits + hit * len(trial.errors), count.runs + len(trial.errors)
                )
                for trial, count in zip(trials, counts, strict=True)
            ]
        )
        for hit in (False, True)
    )
    return None if low is None or high is None else stats.Interval(low, high)
