"""Counts of a case, made up by Hypothesis."""

from __future__ import annotations

from hypothesis import strategies as st

from pytest_upskill.stats import CaseCounts


@st.composite
def case_counts(draw: st.DrawFn, min_runs: int = 0, max_runs: int = 12) -> CaseCounts:
    runs_with = draw(st.integers(min_runs, max_runs))
    runs_without = draw(st.integers(min_runs, max_runs))
    return CaseCounts(
        draw(st.integers(0, runs_with)), runs_with, draw(st.integers(0, runs_without)), runs_without
    )
