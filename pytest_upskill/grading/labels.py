"""Labels of a person: drawing answers for them, and applying them to the trials of a run."""

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from pytest_upskill import LABELS_FILE
from pytest_upskill.cases.judge_labels import (
    KeyEntry,
    LabelArm,
    LabelledAnswer,
    LabelsFile,
    StatementLabel,
    stratum_name,
)
from pytest_upskill.checks.judge import PROMPT_DIGEST
from pytest_upskill.grading.grade import with_changes
from pytest_upskill.project.digest import digest_of
from pytest_upskill.project.grouping import grouped
from pytest_upskill.stats.calibration import STRATA
from pytest_upskill.trials.result import AnswerLabel, CellLabels, RunResult, TrialResult

_AGAIN = "draw again with pytest-upskill judge draw"


def served_judges(trials: Iterable[TrialResult]) -> list[str]:
    """Return the model ids that the API of the judge returned."""
    judgements = [run.judgement for trial in trials for run in trial.runs if run.judgement]
    return sorted({each.served_model for each in judgements if each.served_model})


def answer_digest(text: str) -> str:
    """Return a digest that identifies an answer; ends of lines do not count."""
    # Without the line ends at its end: a labels file, which lists the lines, loses one of them.
    return digest_of("\n".join(text.splitlines()).rstrip("\n"))


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
    if file.models.get(model) != resolved:
        return f"{LABELS_FILE} contains no answer of {model} as {resolved}"
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


# Drawing, without a choice that anybody made

_Place = tuple[str, str, str]
"""Digest of the prompt, digest of the skill, and digest of the answer."""

_Drawn = tuple[LabelledAnswer, KeyEntry]

_Stratum = tuple[str, LabelArm, bool]
"""Label of the model, arm, and whether the judge passed the answers."""


def draw(
    trials: Sequence[TrialResult],
    *,
    case_file: str,
    judge: str,
    answers: int,
    date: str,
    before: LabelsFile | None,
) -> LabelsFile | None:
    """Draw answers of each model from the strata, equally many where there are enough.

    Known labels are filled in afterwards: if an answer were drawn because it has one, answers that
    a model gives often would push out the others, and the correction would miss these.

    Args:
        trials: Trials of one case file in a real run, of all models.
        case_file: Name of the case file.
        judge: Full name of the judge.
        answers: Number of answers of each model.
        date: Date of the drawing.
        before: The labels file to replace, None for none.

    Returns:
        The labels file, or None if no whole answer depended on the judge.
    """
    judged = [
        (trial, run)
        for trial in trials
        if trial.arm != "old_skill" and not trial.train
        for run in trial.runs
        if run.by_judge is not None
    ]
    # Nobody can label an answer that the report has cut.
    candidates = [_candidate(trial, run) for trial, run in judged if not run.left_out]
    if not candidates:
        return None
    in_order = _in_random_order(candidates, "draw")
    strata = grouped(((each.model, key.arm, key.judged), (each, key)) for each, key in in_order)
    chosen = [each for stratum in strata.values() for each in stratum[: answers // len(STRATA)]]
    drawn = _in_random_order(chosen, "show")
    return LabelsFile(
        format=1,
        case_file=case_file,
        drawn=date,
        judge=judge,
        served=served_judges(trials),
        prompt=PROMPT_DIGEST,
        models={trial.model: trial.resolved for trial, _ in judged},
        cases={trial.case: trial.case_digest for trial, _ in judged},
        answers=_with_known_labels(drawn, before),
        key={str(number): key for number, (_, key) in enumerate(drawn, 1)},
        cells=_stratum_sizes(strata),
    )


def _in_random_order(answers: Iterable[_Drawn], purpose: str) -> list[_Drawn]:
    """Return answers in an order that is random, chosen by nobody, and the same in every drawing.

    An answer keeps its place among the others when there are more of them, or other ones. So a
    second drawing repeats much of the first where nothing has changed, whatever is labelled.

    Args:
        answers: The answers.
        purpose: What the order is for; orders for different purposes are independent.
    """
    copies = Counter[tuple[str, str, _Place]]()

    def number(each: _Drawn) -> bytes:
        answer, key = each
        identity = answer.model, answer.case, _place(answer, key)
        copies[identity] += 1
        # Otherwise a text that is given often would be drawn as a whole or not at all.
        return hashlib.sha256(repr((purpose, identity, copies[identity])).encode()).digest()

    return sorted(answers, key=number)


def _candidate(trial: TrialResult, run: RunResult) -> _Drawn:
    """Return an answer that may be drawn; its number is not known yet."""
    answer = LabelledAnswer(
        id=0,
        case=trial.case,
        model=trial.model,
        question=trial.question,
        text=with_changes(run.completion).splitlines(),
        labels=[StatementLabel(statement=each, holds=None) for each in trial.statements],
    )
    key = KeyEntry(
        arm="with" if trial.arm == "with_skill" else "without",
        judged=bool(run.by_judge),
        holds=run.statements,
        prompt=trial.prompt_digest,
        skill=trial.skill_digest,
    )
    return answer, key


def _with_known_labels(drawn: Sequence[_Drawn], before: LabelsFile | None) -> list[LabelledAnswer]:
    """Return the drawn answers, numbered, with the labels that a person has given them before."""
    known = {
        (_place(answer, before.key[str(answer.id)]), label.statement): label
        for answer in (before.answers if before else ())
        for label in answer.labels
        if before and label.holds is not None
    }
    found = []
    for number, (answer, key) in enumerate(drawn, 1):
        place = _place(answer, key)
        labels = [known.get((place, label.statement), label) for label in answer.labels]
        found.append(answer.model_copy(update={"id": number, "labels": labels}))
    return found


def _place(answer: LabelledAnswer, key: KeyEntry) -> _Place:
    return key.prompt, key.skill, answer_digest(answer.full_text)


def _stratum_sizes(
    strata: Mapping[_Stratum, Sequence[_Drawn]],
) -> dict[str, dict[str, int]]:
    """Return the number of answers in each stratum, by model."""
    sizes: dict[str, dict[str, int]] = {}
    for model, arm, judged in sorted(strata, reverse=True):
        name = stratum_name(arm, judged=judged)
        sizes.setdefault(model, {})[name] = len(strata[model, arm, judged])
    return sizes
