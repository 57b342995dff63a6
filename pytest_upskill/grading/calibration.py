"""Which labels of a labels file apply to the trials of a cell, and why the others do not."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pytest_upskill import LABELS_FILE
from pytest_upskill.checks.judge import PROMPT_DIGEST
from pytest_upskill.formats.judge_labels import LabelledAnswer, LabelsFile
from pytest_upskill.grading.workspace import with_changes
from pytest_upskill.trials.result import AnswerLabel, CellLabels, TrialResult

AGAIN = "draw again with pytest-upskill judge draw"


@dataclass(frozen=True, slots=True, kw_only=True)
class CurrentCase:
    """What a case is now."""

    digest: str
    statements: Sequence[str]
    skills: frozenset[str]
    """Digests of the skill as models get it; empty if not known."""


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
    now = current_cases(trials)
    answers = Counter(
        key for trial in trials if trial.arm != "old_skill" for key in _judged_answers(trial)
    )
    problems = [*drift(file, now, judge=judge, models={model: resolved})]
    labels = []
    for answer in applicable(file, now, judge=judge, models={model: resolved}):
        key = file.key[str(answer.id)]
        place = answer.case, key.arm == "with", key.judged
        labels.append(
            AnswerLabel(
                id=answer.id,
                case=answer.case,
                with_skill=key.arm == "with",
                judged=key.judged,
                passed=answer.passed,
                present=answers[*place, answer_digest(answer.full_text)] > 0,
            )
        )
    return CellLabels(labels=tuple(labels), problems=tuple(problems))


def current_cases(trials: Iterable[TrialResult]) -> dict[str, CurrentCase]:
    """Return the cases of trials with the skill, by id."""
    now: dict[str, CurrentCase] = {}
    for trial in trials:
        if trial.arm == "with_skill":
            skills = now[trial.case].skills if trial.case in now else frozenset()
            now[trial.case] = CurrentCase(
                digest=trial.case_digest,
                statements=trial.statements,
                skills=skills | {trial.skill_digest},
            )
    return now


def applicable(
    file: LabelsFile,
    now: Mapping[str, CurrentCase],
    *,
    judge: str,
    models: Mapping[str, str],
) -> list[LabelledAnswer]:
    """Return the answers of some models that are still about these cases, this judge and skill.

    Args:
        file: The labels file.
        now: The cases as they are now, by id.
        judge: Full name of the judge.
        models: Full names of the models, by label.
    """
    if file.judge != judge or file.prompt != PROMPT_DIGEST:
        return []
    return [
        answer
        for answer in file.answers
        if answer.model in models
        and file.models.get(answer.model) == models[answer.model]
        and answer.case in now
        and still_applies(file, answer, now[answer.case])
    ]


def still_applies(file: LabelsFile, answer: LabelledAnswer, now: CurrentCase) -> bool:
    """Return whether the labels of an answer are about a case and a skill as they are now."""
    return not _case_has_changed(file, answer, now) and not _skill_has_changed(file, answer, now)


def drift(
    file: LabelsFile, now: Mapping[str, CurrentCase], *, judge: str, models: Mapping[str, str]
) -> Iterator[str]:
    """Yield a line for each change since the answers were drawn that leaves labels invalid.

    Args:
        file: The labels file.
        now: The cases as they are now, by id; a shard knows only its own.
        judge: Full name of the judge.
        models: Full names of the models, by label.
    """
    if file.judge != judge:
        yield f"labels are for the judge {file.judge}, not {judge}: {AGAIN}"
        return
    if file.prompt != PROMPT_DIGEST:
        yield f"labels are from another version, with other instructions for the judge: {AGAIN}"
        return
    for model, resolved in models.items():
        if (then := file.models.get(model)) not in {None, resolved}:
            yield f"labels are for {model} as {then}, not {resolved}: {AGAIN}"
    of_models = [answer for answer in file.answers if answer.model in models]
    if not of_models:
        names = " and ".join(models)
        yield f"{LABELS_FILE} contains no answer of {names}: {AGAIN}"
    answers = [answer for answer in of_models if answer.case in now]
    changed = dict.fromkeys(a.case for a in answers if _case_has_changed(file, a, now[a.case]))
    for case in changed:
        before = next(answer for answer in answers if answer.case == case)
        what = _difference(before, now[case])
        yield f"labels of {case} do not apply: {what} since: {AGAIN}"
    valid = [answer for answer in answers if answer.case not in changed]
    if any(_skill_has_changed(file, answer, now[answer.case]) for answer in valid):
        yield f"labels are for an older skill: SKILL.md has changed since: {AGAIN}"


def answer_digest(text: str) -> str:
    """Return a digest that identifies an answer; ends of lines do not count."""
    # Without the line ends at its end: a labels file, which lists the lines, loses one of them.
    lines = "\n".join(text.splitlines()).rstrip("\n")
    return hashlib.sha256(lines.encode("utf-8", "replace")).hexdigest()[:16]


def _judged_answers(trial: TrialResult) -> Iterable[tuple[str, bool, bool, str]]:
    for run in trial.runs:
        if run.by_judge is not None:
            text = answer_digest(with_changes(run.completion))
            yield trial.case, trial.arm == "with_skill", run.by_judge, text


def _case_has_changed(file: LabelsFile, answer: LabelledAnswer, now: CurrentCase) -> bool:
    labelled = [label.statement for label in answer.labels]
    return file.cases[answer.case] != now.digest or labelled != list(now.statements)


def _skill_has_changed(file: LabelsFile, answer: LabelledAnswer, now: CurrentCase) -> bool:
    key = file.key[str(answer.id)]
    return key.arm == "with" and bool(now.skills) and key.skill not in now.skills


def _difference(before: LabelledAnswer, now: CurrentCase) -> str:
    labelled = [label.statement for label in before.labels]
    if labelled == list(now.statements):
        return "its question or its checks have changed"
    removed = [each for each in labelled if each not in now.statements]
    return f"its statement {removed[0]!r} has changed" if removed else "it has another statement"
