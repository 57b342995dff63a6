"""Drawing of answers for a person to label, from the trials of a real run."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from pytest_upskill.checks.judge import PROMPT_DIGEST
from pytest_upskill.formats.judge_labels import (
    KeyEntry,
    LabelledAnswer,
    LabelsFile,
    StatementLabel,
)
from pytest_upskill.grading.calibration import (
    CurrentCase,
    answer_digest,
    judged_text,
    still_applies,
)
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
    def arm(self) -> Literal["with", "without"]:
        return "with" if self.trial.arm == "with_skill" else "without"

    @property
    def place(self) -> tuple[str, str, bool]:
        return self.trial.model, self.arm, self.judged


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
    known = _known(before)
    candidates = [_marked(each, known) for each in _candidates(trials)]
    if not candidates:
        return None
    # Reproducible, but not chosen by anybody: by the answers themselves.
    seed = "".join(sorted(answer_digest(each.text) for each in candidates))
    rng = random.Random(seed)  # noqa: S311  no secret
    carried = _carried(before, trials, candidates, judge)
    drawn = [*carried, *_drawn(candidates, known, carried, answers // STRATA, rng)]
    rng.shuffle(drawn)
    file = LabelsFile(
        format=1,
        case_file=case_file,
        drawn=date,
        judge=judge,
        prompt=PROMPT_DIGEST,
        models={each.answer.model: each.resolved for each in carried}
        | {each.trial.model: each.trial.resolved for each in candidates},
        cases={each.answer.case: each.digest for each in carried}
        | {each.trial.case: each.trial.case_digest for each in candidates},
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
        dropped=tuple(_dropped(before, file)),
        too_long=sum(bool(run.cut) for _, run in _judged(trials)),
    )


def _cells(candidates: Iterable[_Candidate]) -> dict[str, dict[str, int]]:
    """Return the number of answers of each stratum, by model."""
    cells: dict[str, Counter[str]] = {}
    for each in candidates:
        cells.setdefault(each.trial.model, Counter())[each.stratum] += 1
    return {model: dict(sorted(strata.items(), reverse=True)) for model, strata in cells.items()}


def _drawn(
    candidates: Iterable[_Candidate],
    known: Known,
    carried: Sequence[_Entry],
    count: int,
    rng: random.Random,
) -> Iterator[_Entry]:
    """Draw answers of each stratum, so that with those that are carried there are enough."""
    strata: dict[tuple[str, str, bool], list[_Candidate]] = {}
    for each in candidates:
        strata.setdefault(each.place, []).append(each)
    there = Counter(each.place for each in carried)
    for place, of in strata.items():
        for each in _some(of, count - there[place], rng):
            yield _Entry(
                answer=_answer(each, known),
                key=_key(each),
                resolved=each.trial.resolved,
                digest=each.trial.case_digest,
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


def _carried(
    before: LabelsFile | None,
    trials: Iterable[TrialResult],
    candidates: Sequence[_Candidate],
    judge: str,
) -> list[_Entry]:
    """Return the labelled answers that are not in this run, as far as their labels apply."""
    if before is None or (before.judge, before.prompt) != (judge, PROMPT_DIGEST):
        return []
    here = {(each.trial.case, answer_digest(each.text)) for each in candidates}
    resolved = dict(before.models)
    now: dict[str, CurrentCase] = {}
    for trial in trials:
        resolved[trial.model] = trial.resolved
        if trial.arm == "with_skill":
            skills = now[trial.case].skills if trial.case in now else frozenset()
            now[trial.case] = CurrentCase(
                digest=trial.case_digest,
                statements=trial.statements,
                skills=skills | {trial.skill_digest},
            )
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


def _key(candidate: _Candidate) -> KeyEntry:
    return KeyEntry(
        arm=candidate.arm,
        judged=candidate.judged,
        holds=candidate.run.statements,
        skill=candidate.trial.skill_digest,
    )


def _answer(candidate: _Candidate, known: Known) -> LabelledAnswer:
    """Return an answer to label; its number is not known yet."""
    trial, place = candidate.trial, (candidate.trial.case, answer_digest(candidate.text))
    return LabelledAnswer(
        id=0,
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
        are = "1 labelled answer is" if len(others) == 1 else f"{len(others)} labelled answers are"
        yield f"{are} dropped, as they are of an older skill, case, model or judge"
