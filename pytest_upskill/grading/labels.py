"""Applying a person's labels to the trials of a run, and comparing a judge with them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from pytest_upskill import LABELS_FILE, stats
from pytest_upskill.cases.judge_labels import (
    ARMS,
    LabelArm,
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


@dataclass(frozen=True, slots=True, kw_only=True)
class CurrentCase:
    """What a case is now."""

    digest: str
    skills: frozenset[str]
    """Digests of the skill as models get it; empty if not known."""
    statements: Sequence[str] | None
    """Statements that the judge decided; None without a run."""


def current_cases(trials: Iterable[TrialResult]) -> dict[str, CurrentCase]:
    """Return the cases of trials with the skill, by id."""
    return {
        trial.case: CurrentCase(
            digest=trial.case_digest,
            skills=frozenset({trial.skill_digest}),
            statements=trial.statements,
        )
        for trial in trials
        if trial.arm == "with_skill"
    }


def cell_labels(
    file: LabelsFile, trials: Sequence[TrialResult], *, judge: str, model: str, resolved: str
) -> CellLabels:
    """Return the labels of a file that apply to the trials of a cell.

    Args:
        file: The labels file beside the case file.
        trials: The trials of the cell.
        judge: Full name of the judge.
        model: Label of the model.
        resolved: Full name of the model.
    """
    applied = apply(
        file,
        current_cases(trials),
        judge=judge,
        served=served_judges(trials),
        models={model: resolved},
    )
    present = {
        (trial.case, trial.arm == "with_skill", run.by_judge, _digest_of(run))
        for trial in trials
        if trial.arm != "old_skill"
        for run in trial.runs
    }
    labels = []
    for answer in applied.answers:
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
    return CellLabels(labels=tuple(labels), problems=tuple(applied.changes))


def _digest_of(run: RunResult) -> str:
    return answer_digest(with_changes(run.completion))


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """The labels of a file that are still about the cases, the judge and the skill of now."""

    answers: Sequence[LabelledAnswer] = ()
    """The labelled answers that apply."""
    changes: Sequence[str]
    """A line for each change since the answers were drawn that leaves labels invalid."""


def apply(
    file: LabelsFile,
    now: Mapping[str, CurrentCase],
    *,
    judge: str,
    served: Sequence[str],
    models: Mapping[str, str],
) -> Applied:
    """Return the labels of some models' answers that apply, and why others do not.

    Args:
        file: The labels file.
        now: The cases as they are now, by id.
        judge: Full name of the judge.
        served: Model ids that the judge's API returned; empty if it was not asked.
        models: Full names of the models, by label.
    """
    if change := _judge_has_changed(file, judge, served):
        return Applied(changes=[f"{change}: {_AGAIN}"])
    other_models = {
        model: then for model in models if (then := file.models.get(model)) != models[model]
    }
    of_models = [answer for answer in file.answers if answer.model in models]
    answers, changed_cases, is_older_skill = [], dict[str, str](), False
    for answer in of_models:
        if answer.case not in now:
            continue
        if difference := _difference(file, answer, now[answer.case]):
            changed_cases[answer.case] = difference
        elif _skill_has_changed(file, answer, now[answer.case]):
            is_older_skill = True
        elif answer.model not in other_models:
            answers.append(answer)
    changes = [
        f"labels are for {model} as {then}, not {models[model]}"
        for model, then in other_models.items()
        if then is not None
    ]
    if not of_models:
        changes.append(f"{LABELS_FILE} contains no answer of {' and '.join(models)}")
    for case, difference in changed_cases.items():
        changes.append(f"labels of {case} do not apply: {difference}")
    if is_older_skill:
        changes.append("labels are for an older skill: SKILL.md has changed since")
    return Applied(answers=answers, changes=[f"{change}: {_AGAIN}" for change in changes])


def _judge_has_changed(file: LabelsFile, judge: str, served: Sequence[str]) -> str:
    """Return how the judge differs from that of the labels, empty if it does not."""
    if file.judge != judge:
        return f"labels are for the judge {file.judge}, not {judge}"
    if file.prompt != PROMPT_DIGEST:
        return "labels are from another version, with other instructions for the judge"
    # A judge that changes under its name may have become more lenient to one of the arms.
    if new := [each for each in served if each not in file.served]:
        then = " and ".join(file.served) or "an unknown model"
        return f"labels are for the judge {judge} when it was {then}, not {' and '.join(new)}"
    return ""


def _difference(file: LabelsFile, answer: LabelledAnswer, now: CurrentCase) -> str:
    """Return how a case differs from that of a labelled answer, empty if it does not."""
    if file.cases[answer.case] != now.digest:
        return "its question or its checks have changed since"
    labelled = [label.statement for label in answer.labels]
    if now.statements is None or labelled == list(now.statements):
        return ""
    other = {*labelled} ^ {*now.statements}
    which = f", such as {min(other)!r}" if other else ""
    return f"other statements of it count since{which}"


def _skill_has_changed(file: LabelsFile, answer: LabelledAnswer, now: CurrentCase) -> bool:
    key = file.key[str(answer.id)]
    return key.arm == "with" and bool(now.skills) and key.skill not in now.skills


# Comparing a judge with labels


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmAgreement:
    """How often a judge is right in one arm of a model."""

    model: str
    arm: LabelArm
    labels: int
    agreement: stats.Agreement


def decisions(file: LabelsFile, answers: Sequence[LabelledAnswer]) -> dict[int, Sequence[bool]]:
    """Return what the judge decided of each statement when the answers were drawn, by id."""
    return {answer.id: file.key[str(answer.id)].holds for answer in answers}


def agreements(
    file: LabelsFile, answers: Sequence[LabelledAnswer], decided: Mapping[int, Sequence[bool]]
) -> Iterator[ArmAgreement]:
    """Yield how often a judge is right in each arm of each model.

    Args:
        file: The labels file.
        answers: The answers whose labels apply.
        decided: What the judge decides of each statement, by id; it may be another judge than
            when the answers were drawn.
    """
    for model, arm in product(file.cells, ARMS):
        weighted: list[tuple[bool, bool, float]] = []
        for judged in (True, False):
            size, labelled = _stratum(file, answers, model, arm, judged=judged)
            weighted += [
                (bool(answer.passed), all(decided[answer.id]), size / len(labelled))
                for answer in labelled
                if answer.id in decided
            ]
        if weighted:
            agreement = stats.weighted_agreement(weighted)
            yield ArmAgreement(model=model, arm=arm, labels=len(weighted), agreement=agreement)


def too_few_labels(file: LabelsFile, answers: Sequence[LabelledAnswer]) -> Iterator[str]:
    """Yield a line for each stratum with too few labels for a correction.

    Args:
        file: The labels file.
        answers: The answers whose labels apply.
    """
    for model, arm, judged in product(file.cells, ARMS, (True, False)):
        size, labelled = _stratum(file, answers, model, arm, judged=judged)
        have, need = len(labelled), min(stats.MIN_LABELS, size)
        if have < need:
            passed = "passed" if judged else "did not pass"
            yield (
                f"{model}: {have} of {need} labels of answers {arm} the skill that the judge "
                f"{passed}"
            )


def disagreements(
    answers: Sequence[LabelledAnswer], decided: Mapping[int, Sequence[bool]]
) -> Iterator[str]:
    """Yield a line for each statement about which judge and labels differ, the most frequent first.

    Args:
        answers: The answers whose labels apply.
        decided: What the judge decides of each statement, by id.
    """
    found: dict[tuple[str, bool], list[str]] = {}
    for answer in answers:
        for label, judged in zip(answer.labels, decided.get(answer.id, ()), strict=False):
            if label.holds is not None and label.holds is not judged:
                note = f"{answer.id} ({label.why})" if label.why else str(answer.id)
                found.setdefault((label.statement, judged), []).append(note)
    for (statement, judged), ids in sorted(found.items(), key=lambda each: -len(each[1])):
        says = "holds" if judged else "does not hold"
        labels = "the label of answer" if len(ids) == 1 else "the labels of answers"
        disagree = "disagrees" if len(ids) == 1 else "disagree"
        yield f"the judge says that {statement!r} {says}, {labels} {', '.join(ids)} {disagree}"


def _stratum(
    file: LabelsFile,
    answers: Sequence[LabelledAnswer],
    model: str,
    arm: LabelArm,
    *,
    judged: bool,
) -> tuple[int, list[LabelledAnswer]]:
    """Return the number of answers in a stratum, and those of them with complete labels."""
    labelled = [
        answer
        for answer in answers
        if answer.passed is not None
        and answer.model == model
        and file.key[str(answer.id)].arm == arm
        and file.key[str(answer.id)].judged is judged
    ]
    return file.cells[model].get(f"{arm}/{str(judged).lower()}", 0), labelled
