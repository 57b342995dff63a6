"""Recall, false triggers and precision, with the query as the unit."""

from __future__ import annotations

from statistics import variance

import pytest

from pytest_upskill.stats.intervals import wilson_interval
from pytest_upskill.stats.triggers import QueryCounts, query_interval, query_rate, trigger_precision


def test_every_query_has_the_same_weight_whatever_its_number_of_runs() -> None:
    assert query_rate([QueryCounts(3, 3), QueryCounts(1, 2), QueryCounts(0, 1)]) == 0.5


def test_a_query_without_a_valid_run_is_left_out() -> None:
    with_missing = [QueryCounts(1, 1), QueryCounts(0, 0), QueryCounts(0, 1)]

    assert query_rate(with_missing) == 0.5
    assert query_interval(with_missing) == wilson_interval(1 / 2, 2)
    assert query_rate([QueryCounts(0, 0)]) is None
    assert query_interval([]) is None


def test_the_interval_counts_queries_and_not_runs_unless_the_queries_are_alike() -> None:
    sure = [QueryCounts(1, 1)] * 9 + [QueryCounts(0, 1)]
    unlike, alike = [QueryCounts(10, 10)] * 9 + [QueryCounts(0, 10)], [QueryCounts(9, 10)] * 10

    assert query_interval(sure) == query_interval(unlike) == wilson_interval(9 / 10, 10)
    assert query_interval(alike) == wilson_interval(0.9, 25)
    # Too few queries do not show how alike they are.
    assert query_interval(alike[:4]) == wilson_interval(0.9, 4)


def test_the_effective_number_of_queries_is_korns_and_graubards() -> None:
    queries = [QueryCounts(hits, 5) for hits in (3, 4, 5, 2, 5, 4)]
    between = variance([0.6, 0.8, 1, 0.4, 1, 0.8]) / 6
    rate = 23 / 30

    # Quantiles of Student's t: for 29 and 5 degrees of freedom.
    effective = rate * (1 - rate) / between * (2.04523 / 2.570582) ** 2
    assert 6 < effective < 15
    assert query_interval(queries) == pytest.approx(wilson_interval(rate, effective), abs=1e-6)


def test_precision_weighs_wanted_and_unwanted_triggers_by_query() -> None:
    wanted = [QueryCounts(2, 2), QueryCounts(1, 2)]

    assert trigger_precision(wanted, [QueryCounts(1, 2), QueryCounts(0, 2)]) == 0.75
    assert trigger_precision([QueryCounts(0, 2)], [QueryCounts(0, 1)]) is None


@pytest.mark.parametrize(("hits", "runs"), [(2, 1), (-1, 1), (0.5, 1)])
def test_impossible_counts_of_queries_are_refused(hits: int, runs: int) -> None:
    with pytest.raises(ValueError, match="passes from 0 to runs"):
        QueryCounts(hits, runs)
