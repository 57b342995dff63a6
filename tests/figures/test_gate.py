"""When the gate of a skill on a model passes, fails, or decides nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain, count

import pytest

from pytest_upskill import stats
from pytest_upskill.figures.cell import Cell
from pytest_upskill.figures.gate import FailOn, Thresholds, decide_gate, decide_gates
from pytest_upskill.figures.presentation import case_lines, columns_of, in_words
from pytest_upskill.report.exit_code import NOT_MEASURED
from tests.conftest import QUESTION, Run, WriteSkill
from tests.loopback import Loopback, Received, Reply
from tests.reporting import counted, run
from tests.scripted_model import Script

META = "skills/billing/skill_meta.json"
LIFTED = {"id": "lifted", "input": QUESTION, "expected": {"contains": "37"}}
FLAT = {"id": "flat", "input": QUESTION, "expected": {"not_contains": "38"}}
OFFLINE = ("--upskill-models", "offline")


def test_every_cell_has_a_gate(run: Run, write_skill: WriteSkill) -> None:
    write_skill()
    write_skill(name="shipping")

    result = run("--upskill-models", "offline,other=offline", "-v", "skills")

    result.assert_outcomes(passed=12)
    gates = [line.split() for line in result.outlines if "::gate[" in line]
    assert [gate[0] for gate in gates] == [
        f"skills/{skill}/skill_meta.json::gate[{model}]"
        for skill in ("billing", "shipping")
        for model in ("offline", "other")
    ]
    # The trials end at 100 %, and from there the progress does not go back.
    assert [gate[-1] for gate in gates] == ["[100%]"] * 4


@pytest.mark.parametrize(("least", "red"), [("0.5", False), ("0.51", True)])
def test_a_lift_under_the_least_is_red(
    run_once: Run, write_skill: WriteSkill, least: str, red: bool
) -> None:
    write_skill(LIFTED, FLAT)

    result = run_once(*OFFLINE, "--upskill-min-lift", least, "skills")

    assert result.ret == (pytest.ExitCode.TESTS_FAILED if red else pytest.ExitCode.OK)
    result.assert_outcomes(passed=4 if red else 5, failed=int(red))


def test_a_red_gate_says_threshold_and_figures_in_one_line(
    run_once: Run, write_skill: WriteSkill, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    write_skill(LIFTED, FLAT)

    result = run_once(*OFFLINE, "--upskill-min-lift", "0.6", "skills")

    line = next(line for line in result.outlines if line.startswith("FAILED"))
    assert line == (
        f"FAILED {META}::gate[offline] - billing on offline: lift is under +60 points "
        "(too few runs: passed 50% without, 100% with, "
        "lift +50 points [-56, +95])"
    )
    result.stdout.no_fnmatch_line("*Traceback*")


@pytest.mark.parametrize(
    ("counts", "of", "fail_on", "steps"),
    [
        ([(0, 1)], 1, "too-few-runs", ["measure more runs or cases", "answers that fail"]),
        ([(5, 5)] * 9, 5, "no-effect", ["remove the skill, write harder cases, "]),
        ([(0, 5)] * 9, 5, "hurts", ["read the answers that fail only with the skill"]),
    ],
)
def test_a_red_gate_says_what_to_do_next(
    counts: list[tuple[int, int]], of: int, fail_on: FailOn, steps: list[str]
) -> None:
    limits = Thresholds(min_mean_pass_rate=None, min_lift=None, fail_on=frozenset({fail_on}))

    gate = decide_gate(counted(counts, of=of), limits)

    *_, last = gate.details
    assert gate.outcome == "failed"
    assert last.startswith("next: ")
    assert all(step in last for step in steps)


@pytest.mark.parametrize(
    ("errors", "least", "outcome"),
    [
        (0, 0.8, "passed"),
        (0, 0.81, "failed"),
        (1, 0.6, "passed"),
        (1, 0.7, "skipped"),
        (1, 0.85, "failed"),
    ],
)
def test_a_threshold_that_missing_runs_could_have_met_or_missed_is_not_decided(
    errors: int, least: float, outcome: str
) -> None:
    cell = counted([(4, 0)] * 5)
    lost = tuple(
        replace(trial, runs=trial.runs[errors:], errors=("no reply",) * errors)
        if trial.arm == "with_skill"
        else trial
        for trial in cell.trials
    )
    limits = Thresholds(min_mean_pass_rate=least, min_lift=None, fail_on=frozenset())
    lifts = replace(limits, min_mean_pass_rate=None, min_lift=least)

    gates = [decide_gate(replace(cell, trials=lost), each) for each in (limits, lifts)]

    assert [gate.outcome for gate in gates] == [outcome, outcome]
    assert [gate.misses_data for gate in gates] == [outcome == "skipped"] * 2


def test_a_regression_that_missing_runs_could_cause_is_not_decided() -> None:
    then = counted([(5, 0)] * 5)
    old = tuple(
        replace(trial, arm="old_skill") for trial in then.trials if trial.arm == "with_skill"
    )
    now = tuple(
        replace(trial, runs=trial.runs[1:], errors=("no reply",))
        if trial.arm == "with_skill"
        else trial
        for trial in then.trials
    )
    cell = replace(then, trials=now + old, planned=15, ref="main")

    (gate,) = decide_gates([cell], REGRESSION, None)
    (whole,) = decide_gates([replace(cell, trials=then.trials + old)], REGRESSION, None)

    assert (gate.outcome, gate.misses_data) == ("skipped", True)
    assert "missing data: 5 missing runs could decide: the skill became worse than " in gate.text
    assert whole.outcome == "passed"


def test_arms_that_were_sent_different_prompts_decide_nothing() -> None:
    cell = counted([(5, 0)] * 5)
    first, *others = cell.trials

    other_prompt = replace(cell, trials=(replace(first, prompt_digest="another"), *others))
    (gate,) = decide_gates([other_prompt], REGRESSION, None)

    assert decide_gates([cell], REGRESSION, None)[0].outcome == "passed"
    assert gate.outcome == "skipped"
    assert "the arms of 'case-1' were sent different prompts" in gate.text


def compared(passes: Sequence[int], *, lost: int, model: str) -> Cell:
    """Make a cell of five runs a case that passed whole at its ref, the first of its runs lost."""
    then = counted([(5, 0)] * len(passes), model=model)
    now = counted([(each, 0) for each in passes], model=model)
    old = (replace(t, arm="old_skill") for t in then.trials if t.arm == "with_skill")
    first, *others = now.trials
    first = replace(first, runs=first.runs[lost:], errors=("no reply",) * lost)
    return replace(now, trials=(first, *others, *old), planned=3 * len(passes), ref="main")


REGRESSION = Thresholds(min_mean_pass_rate=None, min_lift=None, fail_on=frozenset({"regression"}))


@pytest.mark.parametrize("lost", [0, 1])
def test_a_missing_run_does_not_make_a_chance_drop_of_one_of_many_models_red(lost: int) -> None:
    drop = compared([5, 4, 4, 4, 4], lost=lost, model="m0")
    others = [compared([5] * 5, lost=0, model=f"m{n}") for n in range(1, 8)]

    gates = decide_gates([drop, *others], REGRESSION, None)

    assert stats.regression_test(drop_counts(drop)) < 0.05
    assert [gate.outcome for gate in gates] == ["passed"] * 8


def drop_counts(cell: Cell) -> list[stats.CaseCounts]:
    """Count the runs with the skill as it is and as it was."""
    return [
        stats.CaseCounts(one.passes, len(one.runs), other.passes, len(other.runs))
        for one, other in zip(cell.current_trials, cell.old_trials, strict=True)
    ]


@pytest.mark.parametrize(("others", "outcome"), [(0, "failed"), (12, "skipped")])
def test_a_regression_that_stands_only_without_the_other_models_is_left_open_by_missing_runs(
    others: int, outcome: str
) -> None:
    drop = compared([5, 3, 3, 4, 4], lost=1, model="m0")
    cells = [drop, *(compared([5] * 5, lost=0, model=f"m{n}") for n in range(others))]

    gate, *_ = decide_gates(cells, REGRESSION, None)

    assert gate.outcome == outcome


def test_runs_that_a_case_lost_all_of_count_both_ways() -> None:
    whole = compared([5, 4, 4, 4, 5, 5], lost=0, model="m")
    lost = compared([5, 4, 4, 4, 5, 5], lost=5, model="m")

    (whole_gate,), (gate,) = (decide_gates([each], REGRESSION, None) for each in (whole, lost))

    assert (whole_gate.outcome, gate.outcome) == ("passed", "skipped")


def test_missing_runs_of_one_model_can_leave_the_gate_of_another_open() -> None:
    drop = compared([5, 4, 4, 4, 4], lost=0, model="m0")
    unsure = compared([5, 4, 4, 4, 4], lost=1, model="m1")

    gate, _ = decide_gates([drop, unsure], REGRESSION, None)

    assert gate.text == (
        "gate not decided: missing data: missing runs or cut answers of other cells "
        "could decide: "
        "the skill became worse than main: case-2, case-3, case-4, case-5 "
        "(all cases: 21/25 with the skill, main 25/25, p = 0.062)"
    )


def test_a_gate_that_missing_runs_could_turn_ends_as_not_measured(
    run_once: Run, write_skill: WriteSkill, loopback: Loopback
) -> None:
    write_skill(LIFTED | {"min_pass_rate": 0})

    replies = chain([Reply(status=400)], (Reply(text=f"37 ({n})") for n in count()))

    def lose_one_in_six(received: Received) -> Reply:
        if "37" not in received.system:
            return Reply(text="no idea")
        return next(replies)

    loopback.answer = lose_one_in_six
    model = f"--upskill-models=m@{loopback.openai_url}"

    result = run_once(model, "--upskill-runs=6", "--upskill-min-mean-pass-rate=0.9", "skills")

    assert result.ret == NOT_MEASURED
    why = "missing data: 1 missing run could decide: *"
    result.stdout.fnmatch_lines([f"exit code 75: billing on m: gate not decided: {why}"])


@pytest.mark.parametrize(("least", "red"), [(0.5, False), (0.6, True)])
def test_the_case_file_comes_before_the_options(
    run_once: Run, write_skill: WriteSkill, least: float, red: bool
) -> None:
    write_skill(LIFTED, FLAT, gate={"min_lift": least})

    result = run_once(*OFFLINE, "--upskill-min-lift", "0.55", "skills")

    result.assert_outcomes(passed=4 if red else 5, failed=int(red))


@pytest.mark.parametrize(("least", "red"), [(0.5, False), (0.6, True)])
def test_a_pass_rate_with_the_skill_under_the_least_is_red(
    run_once: Run, write_skill: WriteSkill, least: float, red: bool
) -> None:
    missed = LIFTED | {"id": "missed", "expected": {"contains": "38"}, "min_pass_rate": 0}
    write_skill(LIFTED, missed, gate={"min_mean_pass_rate": least})

    result = run_once(*OFFLINE, "skills")

    result.assert_outcomes(passed=4 if red else 5, failed=int(red))


@pytest.mark.parametrize("args", [("-k", "with_skill and not without_skill"), ("-k", "lifted")])
def test_on_part_of_the_trials_there_is_no_decision_and_a_line_says_so(
    run_once: Run, write_skill: WriteSkill, args: tuple[str, ...]
) -> None:
    write_skill(LIFTED, FLAT)

    result = run_once(*OFFLINE, "--upskill-min-lift", "1", *args, "skills")

    outcomes = result.parseoutcomes()
    assert (outcomes["passed"], outcomes["skipped"]) == (2, 1)
    result.stdout.fnmatch_lines(["billing on offline: gate not decided: only 2 of 4 tests ran"])


def test_a_run_that_was_stopped_makes_no_decision(run: Run, write_skill: WriteSkill) -> None:
    write_skill(LIFTED | {"expected": {"contains": "38"}}, *({**FLAT, "id": n} for n in "abcdefgh"))

    result = run(*OFFLINE, "-x", "-rs", "skills")

    assert result.parseoutcomes()["skipped"] == 1
    result.stdout.fnmatch_lines(["SKIPPED * gate not decided: only * of 18 tests ran"])


def test_a_missing_run_without_the_skill_leaves_a_decided_gate_and_its_trial_as_they_are(
    run_once: Run, script: Script
) -> None:
    args = script(one="+++++ --+!-", two="+++++ -----")

    result = run_once(*args, "--upskill-min-mean-pass-rate=0.25")

    assert result.ret == pytest.ExitCode.OK
    result.assert_outcomes(passed=5)
    result.stdout.fnmatch_lines(["  haiku * helps *"])


def test_a_red_gate_does_not_hide_the_figures(run_once: Run, write_skill: WriteSkill) -> None:
    write_skill(LIFTED, FLAT, gate={"min_lift": 1})

    result = run_once(*OFFLINE, "-x", "skills")

    result.assert_outcomes(passed=4, failed=1)
    result.stdout.fnmatch_lines(["  offline  50->100% *"])


def against_ref(now: Sequence[int], then: Sequence[int], of: int = 5) -> Cell:
    """Make a cell of cases that pass so often now and at the ref, and never without the skill."""
    was = counted([(each, 0) for each in then], of)
    old = (replace(t, arm="old_skill") for t in was.trials if t.arm == "with_skill")
    cell = counted([(each, 0) for each in now], of)
    return replace(cell, trials=(*cell.trials, *old), planned=3 * len(now), ref="main")


def test_a_regression_names_the_cases_that_fell_clearly_the_most_first() -> None:
    cell = against_ref((4, 1, 5, 0, 4), (5, 5, 5, 5, 5))

    (gate,) = decide_gates([cell], REGRESSION, None)

    assert "became worse than main: case-4, case-2 (all cases: 14/25 " in gate.text
    assert gate.details[:2] == ["worse: case-4: 5/5 -> 0/5", "worse: case-2: 5/5 -> 1/5"]
    shown = {line.case: line.status for line in case_lines(gate)}
    assert (shown["case-2"], shown["case-1"], shown["case-3"]) == (
        "regressed",
        "regressed",
        "better",
    )


def test_a_regression_of_many_cases_names_the_first_few() -> None:
    (gate,) = decide_gates([against_ref([0] * 9, [1] * 9, of=1)], REGRESSION, None)

    assert gate.regressed
    assert "case-1, case-2, case-3, case-4, case-5 and 4 more" in gate.text


def test_every_column_shows_all_arms() -> None:
    (gate,) = decide_gates([against_ref((5, 5), (5, 5))], REGRESSION, None)

    assert columns_of(gate)["pass rate"] == "0->100->100%"
    assert columns_of(gate)["checks"] == "0.0->1.0->1.0/1.0"
    assert columns_of(gate)["tokens"] == "410->910->910 x2.22"


def test_what_new_cases_gain_does_not_hide_what_the_others_lost() -> None:
    cell = compared([2, 2, 2, 2, 5, 5, 5, 5], lost=0, model="m0")
    never = [replace(each, runs=(run(False),) * 5) for each in cell.trials[-4:]]
    cell = replace(cell, trials=(*cell.trials[:-4], *never))
    news = replace(cell, other_cases=("case-5", "case-6", "case-7", "case-8"))

    (hidden, told) = (decide_gates([each], REGRESSION, None)[0] for each in (cell, news))

    assert (hidden.outcome, told.outcome) == ("passed", "failed")
    assert "became worse than main: case-1, case-2, case-3, case-4" in told.text
    assert told.comparison is not None
    assert told.comparison.notes == (
        "not compared, new or changed since main: case-5, case-6, case-7, case-8",
    )
    assert " points against main, without new and changed cases: 0 of 4 cases better" in in_words(
        told
    )
    assert " points against main: 4 of 8 cases better" in in_words(hidden)
