"""What a judge decides is trusted, and fails a gate, only as far as somebody has checked it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_upskill.cases.skill import Case, Skill
from pytest_upskill.checks import CheckResult
from pytest_upskill.checks.judge import Judge
from pytest_upskill.figures.cell import Cell
from pytest_upskill.figures.gate import FailOn, Thresholds, decide_gate, decide_gates, tipping_point
from pytest_upskill.models import Completion, parse_model
from pytest_upskill.report.history.runs import Point, difference, kept_run
from pytest_upskill.report.notes import notes
from pytest_upskill.trials.result import AnswerLabel, CellLabels, RunResult, TrialResult
from pytest_upskill.trials.trial import Arm, plan
from tests import reporting


def run(judge: bool, code: bool = True) -> RunResult:
    completion = Completion(text="some answer", input_tokens=1, output_tokens=1)
    checks = (("contains", code), ("judge", judge))
    return RunResult(
        completion=completion,
        checks=tuple(CheckResult(name=n, passed=p, message=n) for n, p in checks),
    )


def trial(arm: Arm, passes: int, runs: int, *, code: bool = True) -> TrialResult:
    answers = [run(number < passes, code) for number in range(runs)]
    made = reporting.trial("a", arm, answers, model="m", skill="csv")
    return replace(made, resolved="openai:model", min_pass_rate=0.0, planned=runs)


def cell(with_: int, without: int, *, runs: int = 50, **more: Any) -> Cell:
    made = reporting.cell(trial("with_skill", with_, runs), trial("without_skill", without, runs))
    values: dict[str, Any] = {"judge": "anthropic:judge"} | more
    return replace(made, **values)


def labels(*wrong: tuple[bool, bool], each: int = 10) -> CellLabels:
    """Ten labels of each stratum, which agree with the judge except in some strata."""
    strata = [(with_skill, judged) for with_skill in (True, False) for judged in (True, False)]
    return CellLabels(
        labels=tuple(
            AnswerLabel(
                id=number,
                case="a",
                with_skill=with_skill,
                judged=judged,
                passed=judged is not ((with_skill, judged) in wrong and number % 10 < 5),
                present=True,
            )
            for number, (with_skill, judged) in enumerate(s for s in strata for _ in range(each))
        )
    )


def thresholds(*fail_on: FailOn, min_lift: float | None = None) -> Thresholds:
    return Thresholds(min_mean_pass_rate=None, min_lift=min_lift, fail_on=frozenset(fail_on))


@pytest.mark.parametrize(
    ("with_", "without", "fail_on", "outcome"),
    [
        (10, 40, ("hurts",), "passed"),
        (10, 40, ("hurts", "uncalibrated"), "failed"),
        (40, 10, ("hurts",), "passed"),
        (40, 10, ("uncalibrated",), "failed"),
    ],
)
def test_an_uncalibrated_judge_fails_a_gate_only_if_that_is_asked_for(
    with_: int, without: int, fail_on: tuple[FailOn, ...], outcome: str
) -> None:
    assert decide_gate(cell(with_, without), thresholds(*fail_on)).outcome == outcome


def test_a_calibrated_judge_that_says_hurts_fails_the_gate() -> None:
    gate = decide_gate(cell(10, 40, labels=labels()), thresholds("hurts"))

    assert (gate.outcome, gate.verdict) == ("failed", "hurts")


def test_an_uncalibrated_judge_never_shows_that_a_skill_has_no_effect() -> None:
    alike = cell(400, 400, runs=400)

    assert alike.lift.verdict == "too few runs"
    assert alike.lift.more_runs is None
    assert cell(400, 400, runs=400, labels=labels(each=80)).lift.verdict == "no effect"
    (said,) = notes([decide_gate(alike, thresholds())])
    assert said.startswith(
        "judge: nobody has checked it, so it cannot show that a skill has no effect"
    )


@pytest.mark.parametrize(
    ("passes", "known", "verdict"),
    [
        # Eight failures with the skill would leave the judge's own verdict, not the corrected one.
        ((48, 30), None, "helps"),
        ((48, 30), labels(), "missing data"),
        ((48, 40), None, "missing data"),
        ((48, 40), labels(), "missing data"),
    ],
)
def test_missing_runs_are_weighed_against_the_verdict_that_is_reported(
    passes: tuple[int, int], known: CellLabels | None, verdict: str
) -> None:
    with_, without = passes
    arms = trial("with_skill", with_, 50), trial("without_skill", without, 50)
    missing = tuple(replace(arm, errors=("503",) * 8, planned=58) for arm in arms)

    found = cell(0, 0, trials=missing, labels=known)

    assert found.lift.verdict == verdict


def test_the_tipping_point_is_the_limit_of_the_interval_next_to_nothing() -> None:
    helps, hurts = cell(40, 10), cell(10, 40)

    assert helps.lift.judged is not None
    assert helps.lift.observed is not None
    assert helps.lift.judged.tipping_point == helps.lift.observed.low
    said, of_harm = (decide_gate(each, thresholds()).text for each in (helps, hurts))
    assert "helps by an uncalibrated judge: passed 20% without" in said
    assert said.endswith("holds unless the judge favors the skill by more than 42 points")
    assert "unless the judge disfavors the skill by more than 42 points" in of_harm


def test_a_verdict_that_cut_answers_leave_open_has_no_tipping_point() -> None:
    with_, without = cell(40, 10).trials
    cut = tuple(
        replace(run, completion=replace(run.completion, stop_reason="max_tokens"))
        for run in without.runs
    )

    found = cell(0, 0, trials=(with_, replace(without, runs=cut)))

    assert found.lift.verdict == "too few runs"
    assert tipping_point(found.lift) == ""


def test_cut_answers_that_a_calibrated_judge_did_not_pass_leave_the_verdict_open() -> None:
    with_, without = cell(40, 10).trials
    cut = tuple(
        replace(run, completion=replace(run.completion, stop_reason="max_tokens"))
        for run in without.runs
    )

    found = cell(0, 0, trials=(with_, replace(without, runs=cut)), labels=labels())

    assert found.lift.judged is not None
    assert found.lift.judged.calibrated
    assert found.lift.verdict == "too few runs"


def test_min_lift_is_compared_with_the_corrected_lift() -> None:
    lenient = labels((True, True))
    judged, corrected = cell(40, 20), cell(40, 20, labels=lenient)
    wanted = thresholds(min_lift=0.3)

    assert decide_gate(judged, wanted).outcome == "passed"
    assert decide_gate(corrected, wanted).outcome == "failed"


def test_min_mean_pass_rate_is_compared_with_the_corrected_rate() -> None:
    judged, corrected = cell(40, 20), cell(40, 20, labels=labels((True, True)))
    wanted = replace(thresholds(), min_mean_pass_rate=0.6)

    assert decide_gate(judged, wanted).outcome == "passed"
    assert decide_gate(corrected, wanted).text.startswith(
        "csv on m: corrected pass rate with the skill is under 60% ("
    )


@pytest.mark.parametrize("known", [None, labels()])
def test_a_regression_that_a_judge_found_is_red_and_says_what_it_rests_on(
    known: CellLabels | None,
) -> None:
    trials = (
        trial("with_skill", 10, 50),
        trial("without_skill", 10, 50),
        trial("old_skill", 45, 50),
    )

    (gate,) = decide_gates(
        [cell(0, 0, trials=trials, planned=3, ref="main", labels=known)],
        thresholds("regression"),
        None,
    )

    assert (gate.outcome, gate.verdict) == ("failed", "regression")
    assert any("no labels show its errors about the old one" in line for line in gate.details)


def test_the_history_shows_the_lift_that_the_verdict_is_decided_by() -> None:
    judged, corrected = cell(40, 20), cell(40, 20, labels=labels((True, True)))
    runs = [kept_run(reporting.report(each)) for each in (judged, corrected)]
    points = [Point(run=run, cell=run.cells[0], file="f") for run in runs]

    shown = points[1].columns["lift [95 %]"]
    assert shown.startswith("+0 [")
    assert shown.endswith(", judged +40")
    assert difference(*points) == "lift corrected by labels"
    assert difference(*points[::-1]) == "lift no longer corrected"


def test_labels_that_correct_the_judge_take_all_runs_whatever_the_judge_finds() -> None:
    case = Case(id="a", input="?", checks=(Judge(statement="It is kind."),))
    skill = Skill(name="csv", text="", case_file=Path("skill_meta.json"), cases=(case,))
    model = parse_model("haiku")

    stops = [
        {trial.early_stop for trial in plan(each, [model], runs=9, min_pass_rate=1.0, max_tokens=1,
                                            early_stop=True, judge=judge)}
        for each in (skill, replace(skill, labelled=True))
        for judge in (model, None)
    ]  # fmt: skip

    assert stops == [{True}, {True}, {False}, {True}]


def test_a_cell_of_which_only_a_part_ran_asks_for_no_labels() -> None:
    few = cell(40, 10, labels=labels(each=9), planned=4)

    said = list(notes([decide_gate(few, thresholds())]))
    assert said[0] == "csv on m: gate not decided: only 2 of 4 tests ran"
    assert not any("label" in line for line in said)


def test_a_stratum_with_nine_labels_is_not_calibrated_and_says_what_it_lacks() -> None:
    few = cell(40, 10, labels=labels(each=9))

    assert few.lift.uncalibrated
    assert few.lift.judged is not None
    assert few.lift.judged.reasons == [
        (
            "label 1 more of the answers with the skill that the judge passed, "
            "1 more of the answers with the skill that the judge did not pass, "
            "1 more of the answers without the skill that the judge passed, "
            "1 more of the answers without the skill that the judge did not pass"
        )
    ]


def test_where_code_decides_every_run_no_judge_needs_to_be_checked() -> None:
    trials = (trial("with_skill", 50, 50, code=False), trial("without_skill", 0, 50, code=False))

    assert cell(0, 0, trials=trials).lift.judged is None
    assert cell(40, 10, judge="").lift.judged is None
