from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_upskill.gate import NOT_MEASURED, decide, decide_all
from pytest_upskill.thresholds import Thresholds
from tests.conftest import QUESTION, Run, WriteSkill
from tests.loopback import Loopback, Received, Reply
from tests.reporting import counted

META = "skills/billing/skill_meta.json"
LIFTED = {"id": "lifted", "input": QUESTION, "expected": {"contains": "37"}}
FLAT = {"id": "flat", "input": QUESTION, "expected": {"not_contains": "38"}}
WORSE = {"input": QUESTION, "expected": {"not_contains": "37"}, "min_pass_rate": 0}
OFFLINE = ("--upskill-models", "offline")


def test_every_cell_has_a_gate(run: Run, write_skill: WriteSkill) -> None:
    write_skill()
    write_skill(name="shipping")

    result = run("--upskill-models", "offline,other=offline", "-v", "skills")

    result.assert_outcomes(passed=12)
    gates = [line.split()[0] for line in result.outlines if "::gate[" in line]
    assert gates == [
        f"skills/{skill}/skill_meta.json::gate[{model}]"
        for skill in ("billing", "shipping")
        for model in ("offline", "other")
    ]


@pytest.mark.parametrize(("least", "red"), [("0.5", False), ("0.51", True)])
def test_a_lift_under_the_least_is_red(
    run: Run, write_skill: WriteSkill, least: str, red: bool
) -> None:
    write_skill(LIFTED, FLAT)

    result = run(*OFFLINE, "--upskill-min-lift", least, "skills")

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
        "(too few runs, about 8 would tell: passed 50% without, 100% with, "
        "lift +50 points [-56, +95])"
    )
    result.stdout.no_fnmatch_line("*Traceback*")


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
    limits = Thresholds(min_pass_rate=least, min_lift=None, fail_on=frozenset())
    lifts = replace(limits, min_pass_rate=None, min_lift=least)

    gates = [decide(replace(cell, trials=lost), each) for each in (limits, lifts)]

    assert [gate.outcome for gate in gates] == [outcome, outcome]
    assert [gate.misses_data for gate in gates] == [outcome == "skipped"] * 2


def test_a_regression_that_missing_runs_could_have_been_is_not_decided() -> None:
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
    limits = Thresholds(min_pass_rate=None, min_lift=None, fail_on=frozenset({"regression"}))

    (gate,) = decide_all([cell], limits, None)
    (whole,) = decide_all([replace(cell, trials=then.trials + old)], limits, None)

    assert (gate.outcome, gate.misses_data) == ("skipped", True)
    assert "on 5 runs that came to nothing depends whether regression: " in gate.text
    assert whole.outcome == "passed"


def test_a_gate_that_missing_runs_could_turn_ends_as_not_measured(
    run: Run, write_skill: WriteSkill, loopback: Loopback
) -> None:
    write_skill(LIFTED | {"min_pass_rate": 0})

    def lose_one_in_six(received: Received) -> Reply:
        if not received.system:
            return Reply(text="no idea")
        lost = sum("37" in each.system for each in loopback.requests) == 1
        return Reply(status=400) if lost else Reply(text="37")

    loopback.answer = lose_one_in_six
    model = f"--upskill-models=m@{loopback.openai_url}"

    result = run(model, "--upskill-runs=6", "--upskill-min-pass-rate=0.9", "skills")

    assert result.ret == NOT_MEASURED
    result.stdout.fnmatch_lines(
        ["billing on m: no decision: missing data: on 1 run that came to nothing depends whether *"]
    )


@pytest.mark.parametrize(("least", "red"), [(0.5, False), (0.6, True)])
def test_the_case_file_sets_its_own_thresholds(
    run_once: Run, write_skill: WriteSkill, least: float, red: bool
) -> None:
    write_skill(LIFTED, FLAT, gate={"min_lift": least})

    result = run_once(*OFFLINE, "skills")

    result.assert_outcomes(passed=4 if red else 5, failed=int(red))


def test_the_case_file_comes_before_the_options(run_once: Run, write_skill: WriteSkill) -> None:
    write_skill(LIFTED, FLAT, gate={"min_lift": 0.5})

    result = run_once(*OFFLINE, "--upskill-min-lift", "1", "skills")

    result.assert_outcomes(passed=5)


@pytest.mark.parametrize(("least", "red"), [(0.5, False), (0.6, True)])
def test_a_pass_rate_with_the_skill_under_the_least_is_red(
    run_once: Run, write_skill: WriteSkill, least: float, red: bool
) -> None:
    missed = LIFTED | {"id": "missed", "expected": {"contains": "38"}, "min_pass_rate": 0}
    write_skill(LIFTED, missed, gate={"min_pass_rate": least})

    result = run_once(*OFFLINE, "skills")

    result.assert_outcomes(passed=4 if red else 5, failed=int(red))


def test_a_skill_that_hurts_is_red_by_itself(run: Run, write_skill: WriteSkill) -> None:
    write_skill(*(WORSE | {"id": f"worse-{n}"} for n in range(12)))

    result = run(*OFFLINE, "skills")

    result.assert_outcomes(passed=24, failed=1)
    result.stdout.fnmatch_lines(["billing on offline: the skill hurts (hurts: passed 100% *"])


@pytest.mark.parametrize("args", [("-k", "with_skill and not without_skill"), ("-k", "lifted")])
def test_on_part_of_the_trials_there_is_no_decision_and_the_reader_is_told(
    run: Run, write_skill: WriteSkill, args: tuple[str, ...]
) -> None:
    write_skill(LIFTED, FLAT)

    result = run(*OFFLINE, "--upskill-min-lift", "1", *args, "skills")

    outcomes = result.parseoutcomes()
    assert (outcomes["passed"], outcomes["skipped"]) == (2, 1)
    result.stdout.fnmatch_lines(["billing on offline: no decision: 2 of 4 trials ran"])


def test_a_run_that_was_stopped_makes_no_decision(run: Run, write_skill: WriteSkill) -> None:
    write_skill(LIFTED | {"expected": {"contains": "38"}}, *({**FLAT, "id": n} for n in "abcdefgh"))

    result = run(*OFFLINE, "-x", "-rs", "skills")

    assert result.parseoutcomes()["skipped"] == 1
    result.stdout.fnmatch_lines(["SKIPPED * no decision: * of 18 trials ran"])


def test_missing_answers_leave_the_gate_undecided_and_the_run_not_measured(
    run: Run, write_skill: WriteSkill, loopback: Loopback
) -> None:
    def answer(received: Received) -> Reply:
        return Reply(status=400, text="bad") if "37" in received.system else Reply()

    loopback.answer = answer
    write_skill(FLAT)

    result = run("--upskill-models", f"m@{loopback.openai_url}", "-rs", "skills")

    result.assert_outcomes(errors=1, passed=1, skipped=1)
    assert result.ret == NOT_MEASURED
    result.stdout.fnmatch_lines(["SKIPPED * no decision: missing data: 1 of 1 runs with the *"])


def test_gates_of_different_models_are_decided_apart(
    run_once: Run, write_skill: WriteSkill, loopback: Loopback
) -> None:
    write_skill(LIFTED | {"min_pass_rate": 0}, gate={"min_lift": 1})

    result = run_once("--upskill-models", f"offline,m@{loopback.openai_url}", "skills")

    result.assert_outcomes(passed=5, failed=1)
    result.stdout.fnmatch_lines([f"FAILED {META}::gate?m? - *"])


def test_a_red_gate_does_not_hide_the_figures(run_once: Run, write_skill: WriteSkill) -> None:
    write_skill(LIFTED, FLAT, gate={"min_lift": 1})

    result = run_once(*OFFLINE, "-x", "skills")

    result.assert_outcomes(passed=4, failed=1)
    result.stdout.fnmatch_lines(["  offline  50->100% *"])
