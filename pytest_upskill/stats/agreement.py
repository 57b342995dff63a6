"""How many correct answers a judge accepts, and how many wrong ones it rejects."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum

from pytest_upskill.stats.counts import Estimate
from pytest_upskill.stats.intervals import wilson_interval
from pytest_upskill.stats.labels import JudgedCase, Label, answers_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """How often the judge is right in one arm; None without such a label."""

    holds: Estimate | None
    """Share that the judge passes of the answers that pass by their labels."""
    fails: Estimate | None
    """Share that the judge fails of the answers that do not."""


def agreement(
    cases: Sequence[JudgedCase], labels: Sequence[Label], *, with_skill: bool
) -> Agreement:
    """Return how often the judge is right in one arm, estimated for all of its answers.

    A label stands for as many answers of its stratum as it is one of. The intervals are Wilson's,
    for the effective number of labels (Kish 1965; Korn & Graubard 1998, Surv Methodol 24:193-201).

    Args:
        cases: The runs as judged, one entry for each case.
        labels: The labels, in any order.
        with_skill: Whether the arm is that with the skill.
    """
    weighted: list[tuple[bool, bool, float]] = []
    for judged in (True, False):
        stratum = with_skill, judged
        inside = [label for label in labels if (label.with_skill, label.judged) == stratum]
        if inside:
            weight = answers_of(cases, stratum) / len(inside)
            weighted += [(label.passed, judged, weight) for label in inside]
    return weighted_agreement(weighted)


def weighted_agreement(labels: Sequence[tuple[bool, bool, float]]) -> Agreement:
    """Return how often a judge is right, from labels of one arm.

    Args:
        labels: Of each answer whether it passes by the label, whether it passes by the judge, and
            for how many answers it stands.
    """
    shares = [
        _share([(judged is passed, weight) for label, judged, weight in labels if label is passed])
        for passed in (True, False)
    ]
    return Agreement(holds=shares[0], fails=shares[1])


def _share(labels: Sequence[tuple[bool, float]]) -> Estimate | None:
    """Return the weighted share of true values with its interval, None without any."""
    total = fsum(weight for _, weight in labels)
    if not total:
        return None
    rate = fsum(weight for found, weight in labels if found) / total
    effective = total**2 / fsum(weight**2 for _, weight in labels)
    return Estimate(rate, *wilson_interval(rate, effective))
