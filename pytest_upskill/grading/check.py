"""How well a judge agrees with the labels of a labels file, without any run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pytest_upskill import stats
from pytest_upskill.formats.judge_labels import KeyEntry, LabelledAnswer, LabelsFile

Arm = str
"""``with`` or ``without``, as in the key."""

ARMS: tuple[Arm, ...] = ("with", "without")


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmAgreement:
    """How often a judge is right in one arm of a model."""

    model: str
    arm: Arm
    labels: int
    agreement: stats.Agreement


@dataclass(frozen=True, slots=True, kw_only=True)
class Disagreement:
    """A statement about which judge and labels differ in the same direction."""

    statement: str
    judged: bool
    answers: Mapping[int, str]
    """The author's notes, by the id of the answer."""

    def __str__(self) -> str:
        says = "holds" if self.judged else "does not hold"
        ids = [f"{id_} ({why})" if why else str(id_) for id_, why in self.answers.items()]
        which, disagree = ("answer", "disagrees") if len(ids) == 1 else ("answers", "disagree")
        labels = "the label" if len(ids) == 1 else "the labels"
        return (
            f"the judge says that {self.statement!r} {says}, {labels} of {which} {', '.join(ids)} "
            f"{disagree}"
        )


def decisions(file: LabelsFile, answers: Sequence[LabelledAnswer]) -> dict[int, Sequence[bool]]:
    """Return what the judge decided of each statement when the answers were drawn, by id."""
    return {answer.id: _key(file, answer).holds for answer in answers}


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
    for model in file.cells:
        for arm in ARMS:
            weighted = []
            for judged in (True, False):
                of = list(_labelled(file, answers, model, arm, judged=judged))
                total = file.cells[model].get(f"{arm}/{str(judged).lower()}", 0)
                weighted += [
                    (bool(each.passed), all(decided[each.id]), total / len(of))
                    for each in of
                    if each.id in decided
                ]
            if weighted:
                found = stats.weighted_agreement(weighted)
                yield ArmAgreement(model=model, arm=arm, labels=len(weighted), agreement=found)


def lacking(file: LabelsFile, answers: Sequence[LabelledAnswer]) -> Iterator[str]:
    """Yield a line for each stratum with too few labels for a correction.

    Args:
        file: The labels file.
        answers: The answers whose labels apply.
    """
    for model, strata in file.cells.items():
        for arm in ARMS:
            for judged in (True, False):
                have = len(list(_labelled(file, answers, model, arm, judged=judged)))
                need = min(stats.MIN_LABELS, strata.get(f"{arm}/{str(judged).lower()}", 0))
                if have < need:
                    passed = "passed" if judged else "did not pass"
                    yield (
                        f"{model}: {have} of {need} labels of answers {arm} the skill that the "
                        f"judge {passed}"
                    )


def disagreements(
    answers: Sequence[LabelledAnswer], decided: Mapping[int, Sequence[bool]]
) -> Iterator[Disagreement]:
    """Yield each statement about which the judge and labels differ, the most frequent first."""
    found: dict[tuple[str, bool], dict[int, str]] = {}
    for answer in answers:
        for label, judged in zip(answer.labels, decided.get(answer.id, ()), strict=False):
            if label.holds is not None and label.holds is not judged:
                found.setdefault((label.statement, judged), {})[answer.id] = label.why
    for (statement, judged), ids in sorted(found.items(), key=lambda each: -len(each[1])):
        yield Disagreement(statement=statement, judged=judged, answers=ids)


def _labelled(
    file: LabelsFile, answers: Sequence[LabelledAnswer], model: str, arm: Arm, *, judged: bool
) -> Iterator[LabelledAnswer]:
    """Yield the completely labelled answers of a stratum."""
    for answer in answers:
        key = _key(file, answer)
        there = (answer.model, key.arm, key.judged) == (model, arm, judged)
        if there and answer.passed is not None:
            yield answer


def _key(file: LabelsFile, answer: LabelledAnswer) -> KeyEntry:
    return file.key[str(answer.id)]
