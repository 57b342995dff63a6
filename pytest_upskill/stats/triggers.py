"""How often a skill is chosen: the statistics of trigger trials, in which the query is the unit.

Runs of the same query are alike, so they say little about other queries. Every rate here is a mean
over queries of the rate over their runs, and its interval counts queries: an effective number, as
alike as these are.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from statistics import variance

from pytest_upskill.stats.counts import Interval, check_counts
from pytest_upskill.stats.intervals import student_t_quantile, wilson_interval

_LEAST_QUERIES = 5
"""Fewer show too little of their variance to have an effective number."""
_MOST_EFFECTIVE = 2.5


@dataclass(frozen=True, slots=True)
class QueryCounts:
    """The valid runs of one query, and in how many of them something happened.

    Raises:
        ValueError: A count is not an integer, or hits are not from 0 to runs.
    """

    hits: int
    runs: int

    def __post_init__(self) -> None:
        check_counts("of a query", self.hits, self.runs)

    @property
    def rate(self) -> Fraction:
        """Share of the runs, exact; there must be a run."""
        return Fraction(self.hits, self.runs)


def query_rate(queries: Sequence[QueryCounts]) -> float | None:
    """Return the mean over queries of the rate over their runs.

    Over queries that should trigger the skill this is the recall, over the others the rate of false
    triggers.

    Args:
        queries: Counts per query; queries without a valid run are left out.

    Returns:
        The rate from 0 to 1, or None without a valid run.
    """
    valid = _valid(queries)
    return float(sum(query.rate for query in valid) / len(valid)) if valid else None


def query_interval(queries: Sequence[QueryCounts], level: float = 0.95) -> Interval | None:
    """Return Wilson's score interval of ``query_rate`` for an effective number of queries.

    It is about queries like these, of which these are a sample. The effective number is that of
    single runs with the variance of the mean over queries, ``p (1 - p) / var``, times the squared
    ratio of the quantiles of Student's t for the runs and for the queries (Korn & Graubard 1998,
    Surv Methodol 24:193-201). It is at least n, as a query's rate is from 0 to 1, and at most
    2.5 n: with more, intervals of queries that are nearly sure cover too seldom.

    Args:
        queries: Counts per query; queries without a valid run are left out.
        level: Confidence level, from 0 to 1.

    Returns:
        The interval within 0..1, or None without a valid run.
    """
    rate, valid = query_rate(queries), _valid(queries)
    return None if rate is None else wilson_interval(rate, _effective(valid, rate, level), level)


def _effective(queries: Sequence[QueryCounts], rate: float, level: float) -> float:
    """Return the effective number of queries."""
    number = len(queries)
    if number < _LEAST_QUERIES or not 0 < rate < 1:
        return number
    spread = variance(float(query.rate) for query in queries) / number
    tail = (1 + level) / 2
    runs = sum(query.runs for query in queries)
    ratio = student_t_quantile(tail, runs - 1) / student_t_quantile(tail, number - 1)
    effective = ratio**2 * rate * (1 - rate) / spread if spread else runs
    return max(number, min(effective, _MOST_EFFECTIVE * number, runs))


def trigger_precision(
    wanted: Sequence[QueryCounts], unwanted: Sequence[QueryCounts]
) -> float | None:
    """Return the share of the skill's triggers that were wanted, each query with the same weight.

    ``Σ rates of wanted / (Σ rates of wanted + Σ rates of unwanted)``. It depends on the numbers of
    queries of each kind, so it has no interval.

    Args:
        wanted: Queries that should trigger the skill; hits are runs in which it was taken.
        unwanted: Queries that should not; hits likewise.

    Returns:
        The precision from 0 to 1, or None if the skill was never taken.
    """
    right, wrong = (sum(each.rate for each in _valid(kind)) for kind in (wanted, unwanted))
    return float(right / (right + wrong)) if right + wrong else None


def _valid(queries: Sequence[QueryCounts]) -> list[QueryCounts]:
    return [query for query in queries if query.runs]
