"""Answers are drawn as if none were labelled; then known labels are filled in."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pytest_upskill.cases.judge_labels import LabelsFile
from pytest_upskill.checks import CheckResult
from pytest_upskill.grading.labels import draw
from pytest_upskill.trials.result import RunResult, TrialResult
from pytest_upskill.trials.trial import Arm
from tests import reporting

KIND = "It is kind."


def trial(arm: Arm, *texts: str, **changes: Any) -> TrialResult:
    """Return a trial with these answers, all of which the judge passes."""
    runs: list[RunResult] = [
        replace(
            reporting.run(text=text),
            checks=(CheckResult(name="judge", passed=True, message=KIND),),
        )
        for text in texts
    ]
    made = reporting.trial("a", arm, runs)
    values: dict[str, Any] = {"statements": (KIND,), "case_digest": "1", **changes}
    return replace(made, **values)


def drawn(*trials: TrialResult, before: LabelsFile | None = None, answers: int = 40) -> LabelsFile:
    file = draw(
        trials, case_file="skill_meta.json", judge="j", answers=answers, date="", before=before
    )
    assert file is not None
    return file


def labelled(file: LabelsFile) -> LabelsFile:
    answers = [
        answer.model_copy(
            update={"labels": [each.model_copy(update={"holds": True}) for each in answer.labels]}
        )
        for answer in file.answers
    ]
    return file.model_copy(update={"answers": answers})


def test_what_is_drawn_does_not_depend_on_what_is_labelled() -> None:
    first = labelled(drawn(trial("with_skill", *["often"] * 40)))
    again = trial("with_skill", *["often"] * 40, *(f"rare {n}" for n in range(40)))

    blank, filled = drawn(again), drawn(again, before=first)

    assert [each.text for each in filled.answers] == [each.text for each in blank.answers]
    assert {each.passed for each in filled.answers if each.text == ["often"]} == {True}
    assert {each.passed for each in filled.answers if each.text != ["often"]} == {None}


@pytest.mark.parametrize(
    ("changes", "applies"),
    [
        ({}, True),
        ({"case_digest": "2"}, True),
        ({"prompt_digest": "another question"}, False),
        ({"statements": ("It is short.",)}, False),
        ({"skill_digest": "another version"}, False),
    ],
)
def test_a_known_label_is_of_the_same_text_question_statement_and_skill(
    changes: dict[str, Any], applies: bool
) -> None:
    first = labelled(drawn(trial("with_skill", "often")))

    now = drawn(trial("with_skill", "often", **changes), before=first)

    assert now.labelled == int(applies)


def test_an_unchanged_stratum_is_drawn_alike_when_others_change() -> None:
    texts = [f"answer {n}" for n in range(50)]
    first = drawn(trial("without_skill", *texts), trial("with_skill", *texts))
    second = drawn(trial("without_skill", *texts), trial("with_skill", *texts[:30], "new"))

    without = [
        {"\n".join(a.text) for a in file.answers if file.key[str(a.id)].arm == "without"}
        for file in (first, second)
    ]

    assert without[0] == without[1]
    assert len(without[0]) == 10
