"""Drawing of answers for a person to label, from the trials of a real run."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from pytest_upskill.checks.judge import PROMPT_DIGEST
from pytest_upskill.formats.judge_labels import (
    KeyEntry,
    LabelledAnswer,
    LabelsFile,
    StatementLabel,
)
from pytest_upskill.grading.calibration import (
    answer_digest,
    current_cases,
    still_applies,
)
from pytest_upskill.grading.workspace import with_changes
from pytest_upskill.trials.result import RunResult, TrialResult

STRATA = 4
"""Strata of a model's answers: with and without the skill, passed and not passed by the judge."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """A labels file, and what happened to the labels of the one before."""

    file: LabelsFile
    kept: int
    """Number of answers that had been labelled and still are."""
    dropped: tuple[str, ...]
    """Why labels were dropped, one line each."""
    too_long: int
    """Number of judged answers that cannot be drawn, as the report holds only their beginning."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    """An answer for the labels file, without its number."""

    answer: LabelledAnswer
    key: KeyEntry
    resolved: str
    """Full name of its model."""
    digest: str
    """Digest of its case."""
    cells: dict[str, int] = field(default_factory=dict)
    """Number of answers of each stratum from which it was drawn, if it is of an earlier run."""

    @property
    def place(self) -> tuple[str, str, bool]:
        return self.answer.model, self.key.arm, self.key.judged

    @property
    def identity(self) -> tuple[str, str]:
        return self.answer.case, answer_digest(self.answer.whole)


Known = Mapping[tuple[str, str, str], StatementLabel]
"""Labels by case, digest of the answer, and statement."""


def draw(
    trials: Sequence[TrialResult],
    *,
    case_file: str,
    judge: str,
    answers: int,
    date: str,
    before: LabelsFile | None,
) -> Drawing | None:
    """Draw answers of each model from the strata, equally many where there are enough.

    All answers that are labelled already are kept as long as their labels apply, even if they are
    not in this run.

    Args:
        trials: Trials of one case file in a real run, of all models.
        case_file: Name of the case file.
        judge: Full name of the judge.
        answers: Number of answers of each model.
        date: Date of the drawing.
        before: The labels file to replace, None for none.

    Returns:
        The drawing, or None if no answer depended on the judge.
    """
    known = _labels_by_statement(before)
    judged = list(_judged_runs(trials))
    # Nobody can label an answer that the report has cut.
    candidates = [_entry(trial, run, known) for trial, run in judged if not run.cut]
    if not candidates:
        return None
    # Reproducible, but not chosen by anybody: by the answers themselves.
    seed = "".join(sorted(digest for _, digest in (each.identity for each in candidates)))
    rng = random.Random(seed)  # noqa: S311  no secret
    carried = _carry_over(before, trials, candidates, judge)
    drawn = [*carried, *_draw_answers(candidates, carried, answers // STRATA, rng)]
    rng.shuffle(drawn)
    file = LabelsFile(
        format=1,
        case_file=case_file,
        drawn=date,
        judge=judge,
        prompt=PROMPT_DIGEST,
        models={each.answer.model: each.resolved for each in (*carried, *candidates)},
        cases={each.answer.case: each.digest for each in (*carried, *candidates)},
        statements=before.statements if before else {},
        answers=[
            each.answer.model_copy(update={"id": number}) for number, each in enumerate(drawn, 1)
        ],
        key={str(number): each.key for number, each in enumerate(drawn, 1)},
        cells={each.answer.model: each.cells for each in carried} | _cells(candidates),
    )
    return Drawing(
        file=file,
        kept=file.labelled,
        dropped=tuple(_dropped_label_reasons(before, file)),
        too_long=sum(bool(run.cut) for _, run in judged),
    )


def _cells(candidates: Iterable[_Entry]) -> dict[str, dict[str, int]]:
    """Return the number of answers of each stratum, by model."""
    cells: dict[str, Counter[str]] = {}
    for model, arm, judged in (each.place for each in candidates):
        cells.setdefault(model, Counter())[f"{arm}/{str(judged).lower()}"] += 1
    return {model: dict(sorted(strata.items(), reverse=True)) for model, strata in cells.items()}


def _draw_answers(
    candidates: Iterable[_Entry], carried: Sequence[_Entry], count: int, rng: random.Random
) -> Iterator[_Entry]:
    """Draw answers of each stratum, so that with those that are carried there are enough."""
    strata: dict[tuple[str, str, bool], list[_Entry]] = {}
    for each in candidates:
        strata.setdefault(each.place, []).append(each)
    there = Counter(each.place for each in carried)
    for place, of in strata.items():
        yield from _draw_from_stratum(of, count - there[place], rng)


def _judged_runs(trials: Iterable[TrialResult]) -> Iterator[tuple[TrialResult, RunResult]]:
    """Yield the runs that depended on the judge, in the arms and cases that a lift is of."""
    for trial in trials:
        if trial.arm != "old_skill" and not trial.train:
            yield from ((trial, run) for run in trial.runs if run.by_judge is not None)


def _carry_over(
    before: LabelsFile | None,
    trials: Sequence[TrialResult],
    candidates: Sequence[_Entry],
    judge: str,
) -> list[_Entry]:
    """Return the labelled answers that are not in this run, as far as their labels apply."""
    if before is None or (before.judge, before.prompt) != (judge, PROMPT_DIGEST):
        return []
    here = {each.identity for each in candidates}
    resolved = before.models | {trial.model: trial.resolved for trial in trials}
    now = current_cases(trials)
    return [
        _Entry(
            answer=answer,
            key=before.key[str(answer.id)],
            resolved=before.models[answer.model],
            digest=before.cases[answer.case],
            cells=before.cells[answer.model],
        )
        for answer in before.answers
        if answer.passed is not None
        and (answer.case, answer_digest(answer.whole)) not in here
        and answer.model in before.cells
        and before.models.get(answer.model) == resolved.get(answer.model)
        and (answer.case not in now or still_applies(before, answer, now[answer.case]))
    ]


def _draw_from_stratum(of: Sequence[_Entry], count: int, rng: random.Random) -> list[_Entry]:
    """Draw from a stratum: all that are labelled, and others at random."""
    shuffled = rng.sample(of, len(of))
    count = max(count, sum(each.answer.passed is not None for each in of))
    return sorted(shuffled, key=lambda each: each.answer.passed is None)[:count]


def _labels_by_statement(before: LabelsFile | None) -> Known:
    return {
        (answer.case, answer_digest(answer.whole), label.statement): label
        for answer in (before.answers if before else ())
        for label in answer.labels
        if label.holds is not None
    }


def _entry(trial: TrialResult, run: RunResult, known: Known) -> _Entry:
    """Return an answer to label, with the labels that it has; its number is not known yet."""
    text = with_changes(run.completion)
    place = trial.case, answer_digest(text)
    return _Entry(
        answer=LabelledAnswer(
            id=0,
            case=trial.case,
            model=trial.model,
            question=trial.question,
            text=text.splitlines(),
            labels=[
                known.get((*place, statement), StatementLabel(statement=statement, holds=None))
                for statement in trial.statements
            ],
        ),
        key=KeyEntry(
            arm="with" if trial.arm == "with_skill" else "without",
            judged=bool(run.by_judge),
            holds=run.statements,
            skill=trial.skill_digest,
        ),
        resolved=trial.resolved,
        digest=trial.case_digest,
    )


def _dropped_label_reasons(before: LabelsFile | None, file: LabelsFile) -> Iterator[str]:
    """Yield why labels of the file before are not in the new one."""
    had, have = _labels_by_statement(before), _labels_by_statement(file)
    answers = {
        (each.case, answer_digest(each.whole)): {label.statement for label in each.labels}
        for each in file.answers
    }
    removed = [place for place in had if place not in have]
    changed = {(case, what) for case, text, what in removed if (case, text) in answers}
    for case, statement in sorted(changed):
        yield f"{case}: labels of {statement!r} are dropped, as the statement has changed"
    others = {(case, text) for case, text, _ in removed if (case, text) not in answers}
    if others:
        are = "1 labelled answer is" if len(others) == 1 else f"{len(others)} labelled answers are"
        yield f"{are} dropped, as they are of an older skill, case, model or judge"
