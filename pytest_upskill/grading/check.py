"""How well a judge agrees with the labels of a labels file, without any run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from pytest_upskill import stats
from pytest_upskill.formats.judge_labels import LabelledAnswer, LabelsFile

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
class _Stratum:
    """The answers of one arm of a model that the judge passed, or did not."""

    model: str
    arm: Arm
    judged: bool
    answers: int
    labelled: Sequence[LabelledAnswer]
    """Those whose labels are complete."""


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
    weighted: dict[tuple[str, Arm], list[tuple[bool, bool, float]]] = {}
    for each in _strata(file, answers):
        weighted.setdefault((each.model, each.arm), []).extend(
            (bool(answer.passed), all(decided[answer.id]), each.answers / len(each.labelled))
            for answer in each.labelled
            if answer.id in decided
        )
    for (model, arm), labels in weighted.items():
        if labels:
            agreement = stats.weighted_agreement(labels)
            yield ArmAgreement(model=model, arm=arm, labels=len(labels), agreement=agreement)


def too_few_labels(file: LabelsFile, answers: Sequence[LabelledAnswer]) -> Iterator[str]:
    """Yield a line for each stratum with too few labels for a correction.

    Args:
        file: The labels file.
        answers: The answers whose labels apply.
    """
    for each in _strata(file, answers):
        have, need = len(each.labelled), min(stats.MIN_LABELS, each.answers)
        if have < need:
            passed = "passed" if each.judged else "did not pass"
            yield (
                f"{each.model}: {have} of {need} labels of answers {each.arm} the skill that the "
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


def _strata(file: LabelsFile, answers: Sequence[LabelledAnswer]) -> Iterator[_Stratum]:
    """Yield the strata of each model."""
    places: dict[tuple[str, Arm, bool], list[LabelledAnswer]] = {}
    for answer in answers:
        if answer.passed is not None:
            key = file.key[str(answer.id)]
            places.setdefault((answer.model, key.arm, key.judged), []).append(answer)
    for model, arm, judged in product(file.cells, ARMS, (True, False)):
        yield _Stratum(
            model=model,
            arm=arm,
            judged=judged,
            answers=file.cells[model].get(f"{arm}/{str(judged).lower()}", 0),
            labelled=places.get((model, arm, judged), ()),
        )
