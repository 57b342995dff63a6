"""Applying a person's labels to the trials of a run."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

from pytest_upskill import LABELS_FILE
from pytest_upskill.cases.judge_labels import (
    LabelledAnswer,
    LabelsFile,
)
from pytest_upskill.checks.judge import PROMPT_DIGEST
from pytest_upskill.grading.workspace import with_changes
from pytest_upskill.trials.result import AnswerLabel, CellLabels, RunResult, TrialResult

_AGAIN = "draw again with pytest-upskill judge draw"


def served_judges(trials: Iterable[TrialResult]) -> list[str]:
    """Return the model ids that the API of the judge returned."""
    judgements = [run.judgement for trial in trials for run in trial.runs if run.judgement]
    return sorted({each.served_model for each in judgements if each.served_model})


def answer_digest(text: str) -> str:
    """Return a digest that identifies an answer; ends of lines do not count."""
    # Without the line ends at its end: a labels file, which lists the lines, loses one of them.
    lines = "\n".join(text.splitlines()).rstrip("\n")
    return hashlib.sha256(lines.encode("utf-8", "replace")).hexdigest()[:16]


def cell_labels(
    file: LabelsFile, trials: Sequence[TrialResult], *, judge: str, model: str, resolved: str
) -> CellLabels:
    """Return the labels of a file that are still about the cases, the judge and the skill of now.

    Args:
        file: The labels file beside the case file.
        trials: The trials of the cell; those of a shard are not all.
        judge: Full name of the judge.
        model: Label of the model.
        resolved: Full name of the model.
    """
    if problem := _problem_of_all(file, judge, served_judges(trials), model, resolved):
        return CellLabels(problems=(f"{problem}: {_AGAIN}",))
    now = {trial.case: trial for trial in trials if trial.arm == "with_skill"}
    present = {
        (trial.case, trial.arm == "with_skill", run.by_judge, _digest_of(run))
        for trial in trials
        if trial.arm != "old_skill"
        for run in trial.runs
    }
    labels, problems = list[AnswerLabel](), dict[str, None]()
    for answer in file.answers:
        if answer.model != model or answer.case not in now:
            continue
        if problem := _problem(file, answer, now[answer.case]):
            problems[f"{problem}: {_AGAIN}"] = None
            continue
        key = file.key[str(answer.id)]
        place = answer.case, key.arm == "with", key.judged, answer_digest(answer.full_text)
        labels.append(
            AnswerLabel(
                id=answer.id,
                case=answer.case,
                with_skill=key.arm == "with",
                judged=key.judged,
                passed=answer.passed,
                present=place in present,
            )
        )
    return CellLabels(labels=tuple(labels), problems=tuple(problems))


def _digest_of(run: RunResult) -> str:
    return answer_digest(with_changes(run.completion))


def _problem_of_all(
    file: LabelsFile, judge: str, served: Iterable[str], model: str, resolved: str
) -> str:
    """Return why no label of a file applies to a cell, "" if some may."""
    if file.judge != judge:
        return f"labels are for the judge {file.judge}, not {judge}"
    if file.prompt != PROMPT_DIGEST:
        return "labels are from another version, with other instructions for the judge"
    # A judge that changes under its name may have become more lenient to one of the arms.
    if new := [each for each in served if each not in file.served]:
        then = " and ".join(file.served) or "an unknown model"
        return f"labels are for the judge {judge} when it was {then}, not {' and '.join(new)}"
    if (then := file.models.get(model, "")) != resolved:
        if then:
            return f"labels are for {model} as {then}, not {resolved}"
        return f"{LABELS_FILE} contains no answer of {model}"
    return ""


def _problem(file: LabelsFile, answer: LabelledAnswer, now: TrialResult) -> str:
    """Return why the labels of an answer do not apply to a trial, "" if they do."""
    if file.cases[answer.case] != now.case_digest:
        what = "its question or its checks have changed since"
        return f"labels of {answer.case} do not apply: {what}"
    if [label.statement for label in answer.labels] != list(now.statements):
        return f"labels of {answer.case} do not apply: other statements of it count since"
    key = file.key[str(answer.id)]
    if key.arm == "with" and key.skill != now.skill_digest:
        return "labels are for an older skill: SKILL.md has changed since"
    return ""
