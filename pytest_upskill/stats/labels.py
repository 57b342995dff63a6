"""Answers that a judge decided, and labels by which a person checked some of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pytest_upskill.stats.counts import CaseCounts

MIN_LABELS = 10
"""Minimum number of labels in a stratum, unless all of its answers are labelled."""


@dataclass(frozen=True, slots=True)
class JudgedRuns:
    """The valid runs of one case in one arm, and those that depended on a judge.

    A run depends on the judge if it has statements to decide and no check by code failed.

    Raises:
        ValueError: A count is negative or larger than the one that it is part of.
    """

    passes: int
    runs: int
    judged_passes: int
    """Those of the passes that depended on the judge."""
    judged_fails: int
    """Runs that only the judge did not pass."""

    def __post_init__(self) -> None:
        fails = self.runs - self.passes
        if not 0 <= self.judged_passes <= self.passes or not 0 <= self.judged_fails <= fails:
            raise ValueError(
                f"{self.judged_passes} judged of {self.passes} passes, "
                f"{self.judged_fails} judged of {fails} others: a part cannot be larger"
            )


@dataclass(frozen=True, slots=True)
class JudgedCase:
    """The valid runs of one case in two arms, as the judge decided them."""

    with_skill: JudgedRuns
    without_skill: JudgedRuns

    @property
    def counts(self) -> CaseCounts:
        """The counts by the judge."""
        with_, without = self.with_skill, self.without_skill
        return CaseCounts(with_.passes, with_.runs, without.passes, without.runs)


@dataclass(frozen=True, slots=True, order=True)
class Label:
    """A person's decision about one answer that depended on the judge."""

    case: int
    """Index of the case."""
    with_skill: bool
    judged: bool
    """Whether the answer passed by the judge."""
    passed: bool
    """Whether it passes by the label."""


Stratum = tuple[bool, bool]
"""Whether the skill is in context, and whether the judge passed the answers."""

STRATA: tuple[Stratum, ...] = ((True, True), (True, False), (False, True), (False, False))


def answers_of(cases: Sequence[JudgedCase], stratum: Stratum) -> int:
    """Return the number of answers in a stratum."""
    return sum(count_in(case, stratum) for case in cases)


def lacking_labels(
    cases: Sequence[JudgedCase], labels: Sequence[Label]
) -> list[tuple[Stratum, int]]:
    """Return the strata with too few labels, and how many are missing.

    A stratum needs ``MIN_LABELS`` labels, or labels of all of its answers.

    Args:
        cases: The runs as judged, one entry for each case.
        labels: The labels, in any order.
    """
    lacking = []
    for stratum in STRATA:
        have = sum((label.with_skill, label.judged) == stratum for label in labels)
        need = min(MIN_LABELS, answers_of(cases, stratum))
        if have < need:
            lacking.append((stratum, need - have))
    return lacking


def arm_of(case: JudgedCase, *, with_skill: bool) -> JudgedRuns:
    """Return the runs of one arm."""
    return case.with_skill if with_skill else case.without_skill


def count_in(case: JudgedCase, stratum: Stratum) -> int:
    """Return the number of a case's answers in a stratum."""
    with_skill, judged = stratum
    arm = arm_of(case, with_skill=with_skill)
    return arm.judged_passes if judged else arm.judged_fails
