"""Drawing of answers for a person to label, from the trials of a real run.

Its result is the labels file, which `calibration` later matches with the trials of other runs.
"""

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
    """Full name of the answer's model."""
    case_digest: str
    stratum_sizes: dict[str, int] = field(default_factory=dict)
    """Number of answers in each stratum of its model's cell, if it is from an earlier run."""

    @property
    def stratum(self) -> _Stratum:
        return self.answer.model, self.key.arm, self.key.judged

    @property
    def identity(self) -> _Identity:
        return _identity(self.answer)


_Stratum = tuple[str, str, bool]
"""Model, arm, and whether the judge passed the answer."""

_Identity = tuple[str, str]
"""Case, and digest of the answer's text."""


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
    carried = _carry_over(before, trials, candidates, judge)
    rng = _random_by_content(candidates)
    drawn = [*carried, *_draw_answers(candidates, carried, answers // STRATA, rng)]
    rng.shuffle(drawn)
    sources = [*carried, *candidates]
    old_sizes = {entry.answer.model: entry.stratum_sizes for entry in carried}
    file = LabelsFile(
        format=1,
        case_file=case_file,
        drawn=date,
        judge=judge,
        prompt=PROMPT_DIGEST,
        models={entry.answer.model: entry.resolved for entry in sources},
        cases={entry.answer.case: entry.case_digest for entry in sources},
        statements=before.statements if before else {},
        answers=_numbered(drawn),
        key={str(number): entry.key for number, entry in enumerate(drawn, 1)},
        cells=old_sizes | _stratum_sizes(candidates),
    )
    return Drawing(
        file=file,
        kept=file.labelled,
        dropped=tuple(_dropped_label_reasons(before, file)),
        too_long=sum(bool(run.cut) for _, run in judged),
    )


def _numbered(entries: Iterable[_Entry]) -> list[LabelledAnswer]:
    """Return the answers of entries, with ids from 1."""
    return [
        entry.answer.model_copy(update={"id": number}) for number, entry in enumerate(entries, 1)
    ]


def _random_by_content(candidates: Iterable[_Entry]) -> random.Random:
    """Return a generator seeded by the answers: reproducible, but chosen by nobody."""
    digests = sorted(answer_digest(entry.answer.full_text) for entry in candidates)
    return random.Random("".join(digests))  # noqa: S311  no secret


def _stratum_sizes(candidates: Iterable[_Entry]) -> dict[str, dict[str, int]]:
    """Return the number of answers in each stratum, by model."""
    sizes: dict[str, Counter[str]] = {}
    for model, arm, judged in (entry.stratum for entry in candidates):
        sizes.setdefault(model, Counter())[f"{arm}/{str(judged).lower()}"] += 1
    return {model: dict(sorted(strata.items(), reverse=True)) for model, strata in sizes.items()}


def _draw_answers(
    candidates: Iterable[_Entry], carried: Sequence[_Entry], count: int, rng: random.Random
) -> Iterator[_Entry]:
    """Draw from each stratum until, with the answers carried over, it has ``count``."""
    strata: dict[_Stratum, list[_Entry]] = {}
    for entry in candidates:
        strata.setdefault(entry.stratum, []).append(entry)
    already_there = Counter(entry.stratum for entry in carried)
    for stratum, entries in strata.items():
        yield from _draw_from_stratum(entries, count - already_there[stratum], rng)


def _judged_runs(trials: Iterable[TrialResult]) -> Iterator[tuple[TrialResult, RunResult]]:
    """Yield the runs that depended on the judge, in the arms and cases of the lift."""
    for trial in trials:
        if trial.arm != "old_skill" and not trial.train:
            yield from ((trial, run) for run in trial.runs if run.by_judge is not None)


def _carry_over(
    before: LabelsFile | None,
    trials: Sequence[TrialResult],
    candidates: Sequence[_Entry],
    judge: str,
) -> list[_Entry]:
    """Return the labelled answers that are not in this run but whose labels still apply."""
    if before is None or (before.judge, before.prompt) != (judge, PROMPT_DIGEST):
        return []
    in_this_run = {entry.identity for entry in candidates}
    resolved = before.models | {trial.model: trial.resolved for trial in trials}
    now = current_cases(trials)
    return [
        _Entry(
            answer=answer,
            key=before.key[str(answer.id)],
            resolved=before.models[answer.model],
            case_digest=before.cases[answer.case],
            stratum_sizes=before.cells[answer.model],
        )
        for answer in before.answers
        if answer.passed is not None
        and _identity(answer) not in in_this_run
        and answer.model in before.cells
        and before.models.get(answer.model) == resolved.get(answer.model)
        and (answer.case not in now or still_applies(before, answer, now[answer.case]))
    ]


def _draw_from_stratum(
    entries: Sequence[_Entry], count: int, rng: random.Random
) -> Sequence[_Entry]:
    """Draw from a stratum: all labelled answers, and others at random until there are enough."""
    shuffled = rng.sample(entries, len(entries))
    labelled = [entry for entry in shuffled if entry.answer.passed is not None]
    unlabelled = [entry for entry in shuffled if entry.answer.passed is None]
    return [*labelled, *unlabelled[: max(0, count - len(labelled))]]


def _labels_by_statement(before: LabelsFile | None) -> Known:
    return {
        (*_identity(answer), label.statement): label
        for answer in (before.answers if before else ())
        for label in answer.labels
        if label.holds is not None
    }


def _identity(answer: LabelledAnswer) -> _Identity:
    return answer.case, answer_digest(answer.full_text)


def _entry(trial: TrialResult, run: RunResult, known: Known) -> _Entry:
    """Return an answer to label, with the labels that it has; its number is not known yet."""
    text = with_changes(run.completion)
    identity = trial.case, answer_digest(text)
    return _Entry(
        answer=LabelledAnswer(
            id=0,
            case=trial.case,
            model=trial.model,
            question=trial.question,
            text=text.splitlines(),
            labels=[
                known.get((*identity, statement), StatementLabel(statement=statement, holds=None))
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
        case_digest=trial.case_digest,
    )


def _dropped_label_reasons(before: LabelsFile | None, file: LabelsFile) -> Iterator[str]:
    """Yield why labels of the file before are not in the new one."""
    had, have = _labels_by_statement(before), _labels_by_statement(file)
    answers = {_identity(answer) for answer in file.answers}
    removed = had.keys() - have.keys()
    changed = {(case, statement) for case, text, statement in removed if (case, text) in answers}
    for case, statement in sorted(changed):
        yield f"{case}: labels of {statement!r} are dropped, as the statement has changed"
    others = {(case, text) for case, text, _ in removed if (case, text) not in answers}
    if others:
        are = "1 labelled answer is" if len(others) == 1 else f"{len(others)} labelled answers are"
        yield f"{are} dropped, as they are of an older skill, case, model or judge"
