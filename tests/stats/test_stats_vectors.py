"""The statistics agree with reference values of R, SciPy and statsmodels."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from pytest_upskill.stats import (
    CaseCounts,
    holm,
    lift,
    lift_interval,
    lift_test,
    regression_test,
    runs_needed,
    significant,
    verdict,
)

VECTORS: dict[str, Any] = json.loads(
    (Path(__file__).parent / "vectors" / "statistics.json").read_text(encoding="utf-8")
)
CI = VECTORS["meta"]["tolerance"]["ci"]
P = VECTORS["meta"]["tolerance"]["p"]


def counts(rows: list[list[int]]) -> list[CaseCounts]:
    return [CaseCounts(*row) for row in rows]


def named(key: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(
        "vector", [pytest.param(vector, id=vector["name"]) for vector in VECTORS[key]]
    )


@named("lift")
def test_lift_agrees_with_the_reference(vector: dict[str, Any]) -> None:
    assert lift(counts(vector["cases"])) == pytest.approx(vector["lift"], abs=1e-15)


@named("lift")
def test_lift_interval_agrees_with_ratesci(vector: dict[str, Any]) -> None:
    cases = counts(vector["cases"])

    assert lift_interval(cases) == pytest.approx(vector["ci95"], abs=CI)
    assert lift_interval(cases, level=0.9) == pytest.approx(vector["ci90"], abs=CI)


@named("lift")
def test_lift_test_agrees_with_mantelhaen_exact(vector: dict[str, Any]) -> None:
    cases = counts(vector["cases"])

    assert lift_test(cases) == pytest.approx(vector["p_two_sided_mid"], abs=P, rel=P)
    assert regression_test(cases) == pytest.approx(
        vector["p_less"] - vector["p_point"] / 2, abs=P, rel=P
    )


@named("lift")
def test_verdict_agrees_with_the_reference(vector: dict[str, Any]) -> None:
    assert verdict(counts(vector["cases"])) == vector["verdict"]


@pytest.mark.parametrize(
    "vector",
    [pytest.param(vector, id=vector["name"]) for vector in VECTORS["lift"] if vector["chi2"]],
)
def test_runs_needed_follow_from_the_mantel_haenszel_chi_square(vector: dict[str, Any]) -> None:
    cases = counts(vector["cases"])
    runs = cases[0].runs_with
    for_five_runs = math.ceil(5 / len(cases))

    needed = runs_needed(cases)

    assert needed == max(for_five_runs, math.ceil(runs * 2.8015852**2 / vector["chi2"]))


@named("rounded")
def test_unequal_cases_agree_with_the_reference(vector: dict[str, Any]) -> None:
    cases = counts(vector["cases"])

    assert lift(cases) == pytest.approx(vector["lift"])
    assert lift_interval(cases) == pytest.approx(vector["ci95"], abs=CI)
    assert lift_interval(cases, level=0.9) == pytest.approx(vector["ci90"], abs=CI)
    assert lift_test(cases) == pytest.approx(vector["p_two_sided_mid"], rel=1e-4)
    assert verdict(cases) == vector["verdict"]


@pytest.mark.parametrize("vector", VECTORS["mcnemar"])
def test_one_run_per_arm_is_mcnemars_mid_p(vector: dict[str, Any]) -> None:
    wins, losses = vector["wins"], vector["losses"]
    cases = counts([[1, 1, 0, 1]] * wins + [[0, 1, 1, 1]] * losses + [[1, 1, 1, 1]] * 3)

    assert lift_test(cases) == pytest.approx(vector["mid_p"], abs=P)


@pytest.mark.parametrize("vector", VECTORS["holm"])
def test_holm_agrees_with_the_reference(vector: dict[str, Any]) -> None:
    assert holm(vector["p"]) == pytest.approx(vector["holm"], abs=P)


@named("gate")
def test_regression_test_agrees_with_the_reference(vector: dict[str, Any]) -> None:
    cases = counts(vector["cases"])

    p, change = regression_test(cases), lift(cases)

    assert change == pytest.approx(-vector["drop"])
    assert p == pytest.approx(vector["p_one_sided_mid"], abs=P, rel=P)
    assert (significant(p) and change is not None and change < 0) is vector["fails_alone"]
