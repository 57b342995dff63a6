"""Properties of token figures for any counts."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_upskill.stats import pays_for_itself, token_ratio, tokens_per_pass, total_token_ratio

quick = settings(deadline=None, max_examples=60)
tokens = st.lists(st.integers(1, 10**7), min_size=1, max_size=4)
token_pairs = st.lists(st.tuples(tokens, tokens), min_size=1, max_size=6)


@given(token_pairs)
@quick
def test_swapping_the_arms_inverts_the_token_ratio(
    pairs: list[tuple[list[int], list[int]]],
) -> None:
    here = token_ratio(pairs)
    there = token_ratio([(without, with_) for with_, without in pairs])

    assert here is not None
    assert there is not None
    assert there.ratio == pytest.approx(1 / here.ratio)
    assert (there.low is None) == (here.low is None)
    if here.low is not None and here.high is not None:
        assert here.low <= here.ratio <= here.high
        assert (there.low, there.high) == pytest.approx((1 / here.high, 1 / here.low))


@given(token_pairs, st.floats(0.01, 0.999999))
@quick
def test_no_tokens_crash_any_function(
    pairs: list[tuple[list[int], list[int]]], level: float
) -> None:
    estimate, total = token_ratio(pairs, level), total_token_ratio(pairs)

    assert estimate is not None
    assert estimate.ratio > 0
    assert total is not None
    assert total > 0


@given(st.integers(1, 10**9), st.integers(0, 500), st.integers(1, 10**9), st.integers(0, 500))
@quick
def test_a_skill_pays_for_itself_when_its_passes_cost_less(
    tokens_with: int, passes_with: int, tokens_without: int, passes_without: int
) -> None:
    with_ = tokens_per_pass(tokens_with, passes_with) or math.inf
    without = tokens_per_pass(tokens_without, passes_without) or math.inf

    pays = pays_for_itself(
        tokens_with=tokens_with,
        passes_with=passes_with,
        tokens_without=tokens_without,
        passes_without=passes_without,
    )

    assert pays == (with_ < without)
