"""Figures are rounded for readers, and never so that they say something else."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_upskill.figures.gate import Gate, Thresholds, decide_gate
from pytest_upskill.figures.wording import money, percent, points
from pytest_upskill.report.files.phrases import matrix_parts
from pytest_upskill.report.terminal import table
from tests.reporting import cell, counted, run, trial

NONE = Thresholds(min_mean_pass_rate=None, min_lift=None, fail_on=frozenset())


@pytest.mark.parametrize(
    ("fraction", "text"),
    [(0.5, "+50"), (-0.5, "-50"), (0, "+0"), (-0.0, "+0"), (-0.004, "-0.4"), (0.004, "+0.4")],
    ids=str,
)
def test_a_difference_keeps_its_sign(fraction: float, text: str) -> None:
    assert points(fraction) == text


@pytest.mark.parametrize(
    ("rate", "text"),
    [(0, "0"), (1, "100"), (0.5, "50"), (0.996, "99.6"), (0.99999, "99.9"), (0.0001, "0.1")],
)
def test_a_rate_hides_no_failure_and_no_pass(rate: float, text: str) -> None:
    assert percent(rate) == text


@pytest.mark.parametrize(
    ("passes", "least"), [([7, 7, 7], 0.7), ([10, 10, 4], 0.8), ([1, 1, 1], 0.1)]
)
def test_a_pass_rate_that_is_just_met_passes(passes: list[int], least: float) -> None:
    measured = counted([(each, 0) for each in passes], of=10)

    gate = decide_gate(measured, replace(NONE, min_mean_pass_rate=least))

    assert gate.outcome == "passed"


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        (replace(NONE, min_lift=0.204), "lift is under +20.4 points ("),
        (replace(NONE, min_mean_pass_rate=0.999), "pass rate with the skill is under 99.9% ("),
    ],
)
def test_a_threshold_is_reported_as_it_was_set(limits: Thresholds, said: str) -> None:
    gate = decide_gate(counted([(2, 1)], of=5), limits)

    assert said in gate.text


def test_every_report_has_the_same_ratio_of_tokens() -> None:
    measured = cell(
        *(
            trial(case, "with_skill" if with_ else "without_skill", [run(tokens=tokens)])
            for case, with_, tokens in (
                ("short", True, 90),
                ("short", False, 10),
                ("long", True, 990),
                ("long", False, 990),
            )
        )
    )

    assert "\u00d71.08 tok" in matrix_parts(Gate(cell=measured, outcome="passed", text=""))
    assert any(
        line.endswith(" x1.08")
        for line, _ in table([Gate(cell=measured, outcome="passed", text="")], 100, cases=False)
    )


@pytest.mark.parametrize(
    ("dollars", "text"),
    [(None, "cost n/a"), (0.0, "$0"), (3e-5, "below $0.0001"), (0.0123, "$0.0123"), (1.5, "$1.50")],
)
def test_no_amount_looks_like_nothing_unless_it_is(dollars: float | None, text: str) -> None:
    assert money(dollars) == text
    assert money(3e-5, at_most=True) == "$0.0001"
