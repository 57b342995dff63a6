"""Drawing of answers for a person to label, from the trials of a real run."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from pytest_upskill.checks.judge import PROMPT_DIGEST
from pytest_upskill.formats.judge_labels import (
    KeyEntry,
    LabelledAnswer,
    LabelsFile,
    StatementLabel,
)
from pytest_upskill.grading.calibration import answer_digest, judged_text
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
class _Candidate:
    """An answer that depended on the judge."""

    trial: TrialResult
    run: RunResult
    judged: bool
    known: bool = False
    """Whether all of its statements are labelled already."""

    @property
    def text(self) -> str:
        return judged_text(self.run)

    @property
    def stratum(self) -> str:
        return f"{self.arm}/{str(self.judged).lower()}"

    @property
    def arm(self) -> str:
        return "with" if self.trial.arm == "with_skill" else "without"


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

    All answers that are labelled already are taken; their labels are kept where answer and
    statement are unchanged.

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
    known = _known(before)
    candidates = [_marked(each, known) for each in _candidates(trials)]
    if not candidates:
        return None
    # Reproducible, but not chosen by anybody: by the answers themselves.
    seed = "".join(sorted(answer_digest(each.text) for each in candidates))
    rng = random.Random(seed)  # noqa: S311  no secret
    drawn: list[_Candidate] = []
    cells: dict[str, dict[str, int]] = {}
    for model in dict.fromkeys(each.trial.model for each in candidates):
        strata: dict[str, list[_Candidate]] = {}
        for each in candidates:
            if each.trial.model == model:
                strata.setdefault(each.stratum, []).append(each)
        cells[model] = {name: len(of) for name, of in sorted(strata.items(), reverse=True)}
        for of in strata.values():
            drawn += _some(of, answers // STRATA, rng)
    rng.shuffle(drawn)
    entries = [_answer(number, each, known) for number, each in enumerate(drawn, 1)]
    file = LabelsFile(
        format=1,
        case_file=case_file,
        drawn=date,
        judge=judge,
        prompt=PROMPT_DIGEST,
        models={each.trial.model: each.trial.resolved for each in candidates},
        cases={each.trial.case: each.trial.case_digest for each in candidates},
        statements=before.statements if before else {},
        answers=entries,
        key={
            str(number): KeyEntry(
                arm="with" if each.arm == "with" else "without",
                judged=each.judged,
                holds=each.run.statements,
                skill=each.trial.skill_digest,
            )
            for number, each in enumerate(drawn, 1)
        },
        cells=cells,
    )
    return Drawing(
        file=file,
        kept=file.labelled,
        dropped=tuple(_dropped(before, file)),
        too_long=sum(bool(run.cut) for _, run in _judged(trials)),
    )


def _candidates(trials: Iterable[TrialResult]) -> Iterator[_Candidate]:
    for trial, run in _judged(trials):
        # Nobody can label an answer that the report has cut.
        if run.by_judge is not None and not run.cut:
            yield _Candidate(trial=trial, run=run, judged=run.by_judge)


def _judged(trials: Iterable[TrialResult]) -> Iterator[tuple[TrialResult, RunResult]]:
    """Yield the runs that depended on the judge, in the arms and cases that a lift is of."""
    for trial in trials:
        if trial.arm != "old_skill" and not trial.train:
            yield from ((trial, run) for run in trial.runs if run.by_judge is not None)


def _marked(candidate: _Candidate, known: Known) -> _Candidate:
    place = candidate.trial.case, answer_digest(candidate.text)
    statements = candidate.trial.statements
    return replace(candidate, known=all((*place, each) in known for each in statements))


def _some(of: Sequence[_Candidate], count: int, rng: random.Random) -> list[_Candidate]:
    """Draw from a stratum: all that are labelled, and others at random."""
    shuffled = rng.sample(of, len(of))
    count = max(count, sum(each.known for each in of))
    return sorted(shuffled, key=lambda each: not each.known)[:count]


def _known(before: LabelsFile | None) -> Known:
    return {
        (answer.case, answer_digest(answer.whole), label.statement): label
        for answer in (before.answers if before else ())
        for label in answer.labels
        if label.holds is not None
    }


def _answer(number: int, candidate: _Candidate, known: Known) -> LabelledAnswer:
    trial, place = candidate.trial, (candidate.trial.case, answer_digest(candidate.text))
    return LabelledAnswer(
        id=number,
        case=trial.case,
        model=trial.model,
        question=trial.question,
        text=candidate.text.splitlines(),
        labels=[
            known.get((*place, statement), StatementLabel(statement=statement, holds=None))
            for statement in trial.statements
        ],
    )


def _dropped(before: LabelsFile | None, file: LabelsFile) -> Iterator[str]:
    """Yield why labels of the file before are not in the new one."""
    had, have = _known(before), _known(file)
    answers = {
        (each.case, answer_digest(each.whole)): {label.statement for label in each.labels}
        for each in file.answers
    }
    gone = [place for place in had if place not in have]
    changed = {(case, what) for case, text, what in gone if (case, text) in answers}
    for case, statement in sorted(changed):
        yield f"{case}: labels of {statement!r} are dropped, as the statement has changed"
    others = {(case, text) for case, text, _ in gone if (case, text) not in answers}
    if others:
        yield f"{len(others)} labelled answers are dropped, as they are not in this run"
