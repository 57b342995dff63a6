"""A trigger cell, one skill on one model: how often the skill is chosen, and instead of what."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from pytest_upskill import stats
from pytest_upskill.figures.trial_group import TrialGroup
from pytest_upskill.models import is_language_model
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

    version_arms = ("trigger", "old_trigger")
    gate_kind = "trigger-gate"
    unit, units = "query", "queries"
    under_test = ""

    @cached_property
    def recall(self) -> Rate | None:
        """Share of the queries that should trigger the skill for which a right one is chosen."""
        return _rate(self._right_choices)

    @cached_property
    def false_triggers(self) -> Rate | None:
        """Share of the other queries for which the skill is chosen by mistake."""
        return _rate(self._hits_by_query(wanted=False))

    @cached_property
    def precision(self) -> float | None:
        """Share of the skill's triggers that are wanted; None if it is never taken."""
        wanted, unwanted = self._hits_by_query(wanted=True), self._hits_by_query(wanted=False)
        return stats.trigger_precision(_counts(wanted), _counts(unwanted))

    @property
    def queries(self) -> int:
        """Number of queries with a valid run."""
        return sum(bool(trial.runs) for trial in self.current_trials)

    @cached_property
    def confusions(self) -> tuple[Confusion, ...]:
        """Every pair of wanted and chosen skill, right ones included, in order."""
        return tuple(sorted(self._choices(only_wrong=False)))

    @cached_property
    def mistakes(self) -> list[Confusion]:
        """Wrong choices, most frequent first."""
        return sorted(self._choices(only_wrong=True), key=lambda each: (-each.runs, each))

    def recall_if(self, right: bool) -> float | None:
        """Return the recall if all open runs took the right skill, or if none did."""
        return _rate_if(self._right_choices, hit=right)

    def false_triggers_if(self, taken: bool) -> float | None:
        """Return the rate of false triggers if all open runs took the skill, or if none did."""
        return _rate_if(self._hits_by_query(wanted=False), hit=taken)

    @property
    def misses_data(self) -> bool:
        """Whether runs are missing without which there is no decision."""
        return bool(self.missing) and not self.by_words

    @property
    def why_undecidable(self) -> str | None:
        """Why no decision about the cell is possible, None if one is."""
        if self.by_words:
            return BY_WORDS
        if len(self.trials) != self.planned:
            return f"{len(self.trials)} of {self.planned} trigger trials ran"
        return None if self.queries else "missing data: no query has a valid run"

    @property
    def by_words(self) -> bool:
        """Whether ``offline`` chose, by words in common, and not a model."""
        return not is_language_model(self.resolved)

    @property
    def _right_choices(self) -> list[_Hits]:
        """How often each query that should trigger the skill got a right one."""
        return [(trial, trial.passes) for trial in self._queries(wanted=True)]

    def _hits_by_query(self, *, wanted: bool) -> list[_Hits]:
        """Return how often each query that should trigger the skill, or should not, took it."""
        return [(trial, _times_taken(trial)) for trial in self._queries(wanted=wanted)]

    def _queries(self, *, wanted: bool) -> list[TrialResult]:
        return [
            each for each in self.current_trials if each.trigger and each.trigger.should is wanted
        ]

    def _choices(self, *, only_wrong: bool) -> Iterator[Confusion]:
        counts = Counter(
            (wanted_of(trial), run.choice.taken or NO_SKILL)
            for trial in self.current_trials
            for run in trial.runs
            if run.choice is not None and not (only_wrong and run.passed)
        )
        return (Confusion(*pair, runs) for pair, runs in counts.items())


def wanted_of(trial: TrialResult) -> str:
    """Return what a query should trigger, as a row of the confusion matrix."""
    trigger = trial.trigger
    if trigger is None or trigger.should:
        return trial.listed_as
    if trigger.others:
        return " or ".join(trigger.others)
    return NO_SKILL if trigger.nothing else any_except(trial.listed_as)


def any_except(skill: str) -> str:
    """Return what is wanted where only one skill would be wrong, as a row of the matrix."""
    return f"(not {skill})"


_Hits = tuple[TrialResult, int]
"""A query, and in how many of its valid runs something happened."""


def _times_taken(trial: TrialResult) -> int:
    return sum(run.choice is not None and run.choice.taken == trial.listed_as for run in trial.runs)


def _counts(queries: Iterable[_Hits]) -> list[stats.QueryCounts]:
    return [stats.QueryCounts(hits, len(trial.runs)) for trial, hits in queries]


def _rate(queries: Sequence[_Hits]) -> Rate | None:
    counts = _counts(queries)
    estimate, interval = stats.query_rate(counts), stats.query_interval(counts)
    if estimate is None or interval is None:
        return None
    return Rate(estimate, *interval, sum(bool(query.runs) for query in counts))


def _rate_if(queries: Sequence[_Hits], *, hit: bool) -> float | None:
    """Return the rate if all open runs count as hits, or if none does."""
    return stats.query_rate(
        [
            stats.QueryCounts(
                hits + hit * (trial.cut_failures + len(trial.errors)),
                len(trial.runs) + len(trial.errors),
            )
            for trial, hits in queries
        ]
    )
