"""Notes below the table of figures: what explains a verdict, or would change it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_upskill.figures.comparison import Comparison
from pytest_upskill.figures.gate import Gate
from pytest_upskill.report.notes import notes
from pytest_upskill.trials.needs import unmeasured_lines
from pytest_upskill.trials.result import SkippedCase, Unmeasured
from tests.reporting import counted

LIKELY = [(1, 0)] * 4 + [(1, 1)] * 26
MORE = "too few runs on haiku: --upskill-runs 3 would be enough with a probability of 59 %"
ADD_CASES = "add cases, or raise --upskill-runs where answers differ from run to run"


@pytest.mark.parametrize(
    ("counts", "of", "why"),
    [
        ([(1, 0)] * 4, 1, "helps or hurts needs 5 runs in each arm; 4 count"),
        (
            [(1, 0)] * 4 + [(0, 0)],
            1,
            (
                "chance alone gives such a difference in 6.2 % of experiments, and helps or hurts "
                "needs at most 4 %"
            ),
        ),
        ([(5, 0)] * 4, 5, None),
        ([(1, 1)] * 5, 1, None),
    ],
)
def test_a_verdict_that_seems_to_contradict_its_interval_explains_itself(
    counts: list[tuple[int, int]], of: int, why: str | None
) -> None:
    cell = counted(counts, of)

    said = list(notes([Gate(cell=cell, outcome="passed", text="")]))

    why_not = [line for line in said if "helps or hurts needs" in line]
    assert why_not == ([f"{cell.name}: too few runs: {why}"] if why else [])


@pytest.mark.parametrize(
    ("resolved", "cure"),
    [("offline:offline", "add cases"), ("openai:x@h temperature=0 top_p=1", ADD_CASES)],
)
def test_more_runs_are_suggested_only_for_models_whose_runs_differ(
    resolved: str, cure: str
) -> None:
    measured = counted(LIKELY, of=1)
    gate = Gate(cell=measured, outcome="passed", text="")
    copies = replace(gate, cell=replace(measured, resolved=resolved))

    said, of_copies = (list(notes([each])) for each in (gate, copies))

    assert said[-1] == MORE
    assert of_copies[-1] == f"too few runs on haiku: {cure}"


def test_a_stop_text_is_not_taken_for_a_temperature() -> None:
    resolved = 'openai:x@h stop=["a temperature=0 b"]'
    cell = replace(counted(LIKELY, of=1), resolved=resolved)

    assert list(notes([Gate(cell=cell, outcome="passed", text="")]))[-1] == MORE


@pytest.mark.parametrize("alike", [1, 7], ids=["a chance of 4 %", "a chance of 35 %"])
def test_more_runs_that_would_probably_not_be_enough_are_no_advice(alike: int) -> None:
    gate = Gate(cell=counted([(1, 0), *[(1, 1)] * alike], of=1), outcome="passed", text="")

    assert list(notes([gate])) == [f"too few runs on haiku: {ADD_CASES}"]
    assert gate.cell.lift.runs_needed is None


def test_copies_of_one_answer_are_answered_by_more_cases_or_by_other_answers() -> None:
    measured = counted([(2, 2)], of=2)
    copied = tuple(replace(trial, planned=2, distinct=1) for trial in measured.trials)

    gate = Gate(cell=replace(measured, trials=copied), outcome="passed", text="")

    assert next(notes([gate])).endswith(
        "so one run counts: add cases, or let its server vary the answers, if it can "
        "(--upskill-param temperature=1)"
    )


def test_advice_about_runs_names_its_models_where_others_need_cases() -> None:
    varies = counted(LIKELY, of=1)
    cells = [varies, replace(varies, model="offline", resolved="offline:offline")]

    gates = [Gate(cell=cell, outcome="passed", text="") for cell in cells]
    said = list(notes(gates))

    assert said[-2:] == [MORE, "too few runs on offline: add cases"]


def test_where_nothing_differs_in_few_runs_more_runs_or_cases_are_the_advice() -> None:
    gates = [Gate(cell=counted([(1, 1)], of=1), outcome="passed", text="")]

    (said,) = notes(gates)

    assert said == f"too few runs on haiku: {ADD_CASES}"


def test_a_note_about_several_cells_is_one_line() -> None:
    past = Comparison(compared_with="baseline", notes=("no baseline: record one",), lacking=True)
    cells = [replace(counted([(5, 0)] * 4, of=5), skill=name) for name in ("csv", "cat")]
    gates = [Gate(cell=cell, outcome="passed", text="", comparison=past) for cell in cells]

    line = "csv on haiku, cat on haiku: no baseline: record one"
    said = [f"nothing was compared: {line}"]
    assert [each for each in notes(gates) if "baseline" in each] == [line]
    assert line not in notes(gates, said=said)


def test_a_skill_is_named_once_whose_lift_and_choice_were_both_not_measured() -> None:
    skipped = [
        Unmeasured(
            path="skills/oncall/skill_meta.json",
            skill="oncall",
            model="sonnet",
            cases=(SkippedCase(case=case, reason="stopped"),),
            is_changed=False,
        )
        for case in ("answer", "query")
    ]

    (line,) = unmeasured_lines(skipped)

    assert line == "not measured, as every case was skipped: oncall on sonnet: 2 cases: stopped"
