"""What answers that are cut at the output limit do to verdict, gate and reports."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_upskill.cases.skill import Case
from pytest_upskill.checks import CheckResult
from pytest_upskill.checks.text import Contains, NotContains, TextCheck
from pytest_upskill.figures.gate import Thresholds, decide_gate, decide_gates
from pytest_upskill.grading.grade import Answer, check_text, grade, text_checks_of
from pytest_upskill.models.completion import StopReason
from pytest_upskill.report.exit_code import NOT_MEASURED
from pytest_upskill.report.notes import ending_notes
from pytest_upskill.trials.result import RunResult, TrialResult
from pytest_upskill.trials.trial import Arm
from tests import junit
from tests.conftest import Run
from tests.planning import planned
from tests.reporting import cell, chosen, trial
from tests.reporting import run as run_of
from tests.scripted_model import Script

RAISE = "raise --upskill-max-tokens"
NO_LIMITS = Thresholds(min_mean_pass_rate=None, min_lift=None, fail_on=frozenset())


def answers(passes: str) -> list[RunResult]:
    """Make runs: ``+`` passed, ``-`` failed, ``%`` and ``/`` did so with a cut answer."""
    return [ended(run_of(each in "+%"), "max_tokens" if each in "/%" else "end") for each in passes]


def ended(run: RunResult, why: StopReason) -> RunResult:
    return replace(run, completion=replace(run.completion, stop_reason=why))


def both(with_: str, without: str, *, cases: int = 4) -> list[TrialResult]:
    arms: Sequence[tuple[Arm, str]] = (("with_skill", with_), ("without_skill", without))
    return [
        replace(trial(f"case-{number}", arm, answers(passes)), planned=len(passes), max_tokens=60)
        for number in range(cases)
        for arm, passes in arms
    ]


def test_a_skill_helps_only_if_it_does_with_the_cut_answers_of_the_baseline_passed(
    script: Script, run_once: Run
) -> None:
    args = script(one="+++++ /////", two="+++++ /////", three="+++++ /////")

    result = run_once(
        *args,
        "--upskill-max-tokens=60",
        "--upskill-json=out.json",
        "--upskill-md=out.md",
        "--upskill-html=out.html",
        "--junitxml=junit.xml",
    )

    assert result.ret == pytest.ExitCode.OK
    line = f"15 of 15 answers without the skill were cut at 60 tokens: {RAISE}"
    result.stdout.fnmatch_lines(
        [
            "  haiku * too few runs *",
            f"csv on haiku: {line}",
            f"csv on haiku: 15 cut answers ({RAISE}) could change the verdict 'helps'",
        ]
    )
    result.stdout.no_fnmatch_line("*--upskill-runs*")
    assert line in Path("out.md").read_text("utf-8")
    assert line in Path("out.html").read_text("utf-8")
    (entry,) = json.loads(Path("out.json").read_text("utf-8"))["entries"]
    assert entry["figures"]["verdict"] == "too few runs"
    figures = entry["figures"]
    assert [figures[f"{what}.without"] for what in ("runs", "cut", "refused")] == [15, 15, 0]
    gate = junit.properties(junit.cases_of(Path("junit.xml"))["gate[haiku]"])
    assert gate["upskill.cut.without"] == "15"


def test_a_verdict_that_cut_answers_leave_open_says_so_with_q(
    script: Script, run_once: Run
) -> None:
    result = run_once("-q", *script(one="+++++ /////", two="+++++ /////"))

    result.stdout.fnmatch_lines(
        [f"csv on haiku: 10 cut answers ({RAISE}) could change the verdict 'helps'"]
    )


def test_an_answer_that_holds_what_is_asked_passes_though_it_was_cut(
    script: Script, run_once: Run
) -> None:
    result = run_once(*script(one="%%%%% -----", two="%%%%% -----"))

    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(
        ["  haiku * helps *", f"*10 of 10 answers with the skill were cut at * tokens: {RAISE}"]
    )


@pytest.mark.parametrize(
    ("with_", "without", "verdict"),
    [
        ("+++++", "-----", "helps"),
        ("+++++", "-//--", "helps"),
        ("+++++", "/////", "too few runs"),
        ("-----", "+++++", "hurts"),
        ("/////", "+++++", "too few runs"),
        ("-----", "%%%%%", "hurts"),
        ("+++++++++++", "+++++++++++", "no effect"),
        ("+++++++++++", "+++++++++//", "too few runs"),
    ],
)
def test_a_verdict_stands_if_no_cut_answer_could_change_it(
    with_: str, without: str, verdict: str
) -> None:
    measured = cell(*both(with_, without))

    assert measured.lift.verdict == verdict
    assert measured.lift.more_runs is None


CUT_ANSWERS = st.sampled_from(["end", "max_tokens", "refusal", "other"])


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(
            st.booleans(),
            st.booleans(),
            st.sampled_from(["", "It is 37."]),
            *[st.lists(CUT_ANSWERS, min_size=5, max_size=5)] * 2,
        ),
        min_size=1,
        max_size=5,
    )
)
def test_equal_answers_never_help_or_hurt_whatever_ends_them(
    cases: list[tuple[bool, bool, str, list[StopReason], list[StopReason]]],
) -> None:
    trials = []
    for number, (is_negative, passed, text, *arms) in enumerate(cases):
        result = CheckResult(name="a", passed=passed, message="a", is_negative=is_negative)
        answer = replace(run_of(text=text), checks=(result,))
        names: tuple[Arm, Arm] = ("with_skill", "without_skill")
        trials += [
            trial(f"case-{number}", arm, [ended(answer, why) for why in reasons])
            for arm, reasons in zip(names, arms, strict=True)
        ]

    assert cell(*trials).lift.verdict in {"no effect", "too few runs"}


def test_a_cut_answer_does_not_show_that_something_is_absent() -> None:
    absent = CheckResult(name="excludes", passed=True, message="excludes 'x'", is_negative=True)
    present = CheckResult(name="not_too_long", passed=True, message="not_too_long 9: 3 words")

    only_absent, both_kinds = (
        ended(replace(run_of(), checks=checks), "max_tokens")
        for checks in ((absent,), (present, absent))
    )

    assert (only_absent.passed, only_absent.is_cut) == (False, True)
    assert both_kinds.passed


def test_the_class_of_a_check_says_whether_a_cut_answer_shows_nothing_and_not_its_name() -> None:
    @dataclass(frozen=True)
    class Excludes(NotContains):
        name: ClassVar[str] = "excludes"

    @dataclass(frozen=True)
    class NotTooShort(Contains):
        name: ClassVar[str] = "not_too_short"

    cut = Answer(completion=ended(run_of(), "max_tokens").completion)

    def passes(check: TextCheck) -> bool:
        case = Case(id="a", input="How many?", checks=(check,), tags=())
        checked = replace(cut, checked=check_text(text_checks_of(case), "It is 37."))
        ((early,), (late,)) = (grade(planned(case)[0], [a]).runs for a in (cut, checked))
        assert early == late
        return early.passed

    assert not passes(Excludes("38"))
    assert passes(NotTooShort("37"))


def test_a_refusal_is_graded_as_the_answer_that_it_is_and_counted() -> None:
    refused = [ended(run_of(passed), "refusal") for passed in (True, False)]

    measured = cell(trial("a", "with_skill", refused), trial("a", "without_skill", answers("--")))

    assert [run.passed for run in refused] == [True, False]
    assert list(ending_notes(measured)) == [
        "2 of 2 answers with the skill were refused by the model"
    ]


@pytest.mark.parametrize(("least", "outcome"), [(0.1, "passed"), (0.3, "skipped"), (0.7, "failed")])
def test_a_limit_that_cut_answers_could_meet_or_miss_is_not_decided(
    least: float, outcome: str
) -> None:
    gate = decide_gate(cell(*both("+++++", "++/-/")), replace(NO_LIMITS, min_lift=least))

    assert (gate.outcome, gate.misses_data) == (outcome, outcome == "skipped")


def test_a_regression_that_cut_answers_could_explain_is_not_decided() -> None:
    now = both("///++", "-----", cases=5)
    old = [
        replace(each, arm="old_skill", runs=tuple(answers("+++++")))
        for each in now
        if each.arm == "with_skill"
    ]
    measured = replace(cell(*now, *old), ref="main")
    limits = replace(NO_LIMITS, fail_on=frozenset({"regression"}))

    (gate,) = decide_gates([measured], limits, None)

    assert gate.outcome == "skipped"
    assert f"15 cut answers ({RAISE}) could decide: the skill became worse than" in gate.text


@pytest.mark.parametrize(
    ("with_", "outcome"), [("-----", "failed"), ("/////", "skipped"), ("+++++", "passed")]
)
def test_that_a_skill_hurts_is_not_decided_by_cut_answers(with_: str, outcome: str) -> None:
    limits = replace(NO_LIMITS, fail_on=frozenset({"hurts"}))

    gate = decide_gate(cell(*both(with_, "+++++")), limits)

    assert gate.outcome == outcome
    assert ("could decide: the skill hurts" in gate.text) == (outcome == "skipped")


def test_a_gate_that_cut_answers_could_turn_ends_as_not_measured(
    script: Script, run_once: Run
) -> None:
    args = script(one="+++++ +////", two="+++++ -----")

    result = run_once(*args, "--upskill-min-lift=0.85")

    assert result.ret == NOT_MEASURED
    why = f"missing data: 4 cut answers ({RAISE}) could decide: lift is under +85 points"
    result.stdout.fnmatch_lines([f"exit code 75: csv on haiku: gate not decided: {why}"])


def test_a_choice_that_was_cut_before_it_was_made_is_open() -> None:
    whole = chosen([5, 0], [0])
    first, second, third = whole.trials
    cut = [replace(each, runs=tuple(ended(x, "max_tokens") for x in each.runs))
           for each in (first, second, third)]  # fmt: skip
    unsure = replace(whole, trials=tuple(cut))

    def outcomes(limits: Thresholds) -> list[str]:
        return [decide_gates([each], limits, None)[0].outcome for each in (whole, unsure)]

    assert outcomes(replace(NO_LIMITS, min_recall=0.7)) == ["failed", "skipped"]
    assert outcomes(replace(NO_LIMITS, min_recall=0.5)) == ["passed", "passed"]
    assert outcomes(replace(NO_LIMITS, max_false_triggers=0.5)) == ["passed", "skipped"]


def test_no_baseline_is_written_from_answers_that_were_cut(script: Script, run_once: Run) -> None:
    result = run_once(*script(one="+++++ ///--"), "--upskill-baseline-update")

    result.stdout.fnmatch_lines([f"no baseline written of csv on haiku: 3 cut answers ({RAISE})"])
