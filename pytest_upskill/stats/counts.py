"""The counts of runs on which all statistics are based, and the lift."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class CaseCounts:
    """The valid runs of one case in two arms, and how many of them passed.

    Raises:
        ValueError: A count is not an integer, or passes are not from 0 to runs.
    """

    passes_with: int
    runs_with: int
    passes_without: int
    runs_without: int

    def __post_init__(self) -> None:
        check_counts("with the skill", self.passes_with, self.runs_with)
        check_counts("without the skill", self.passes_without, self.runs_without)

    @property
    def usable(self) -> bool:
        """Whether both arms have at least one valid run."""
        return self.runs_with > 0 and self.runs_without > 0

    @property
    def difference(self) -> Fraction:
        """The pass rate with minus the pass rate without, exact for comparisons."""
        without = Fraction(self.passes_without, self.runs_without)
        return Fraction(self.passes_with, self.runs_with) - without


class Interval(NamedTuple):
    """A closed interval."""

    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Estimate:
    """An estimate, such as a rate or a difference of rates, with its 95 % interval."""

    estimate: float
    low: float
    high: float


def usable(cases: Sequence[CaseCounts]) -> list[CaseCounts]:
    """Return the cases with a valid run in both arms."""
    return [case for case in cases if case.usable]


def lift(cases: Sequence[CaseCounts]) -> float | None:
    """Estimate the lift, which is the mean difference in pass rate over cases.

    ``(1/C) Σ (passes_with/runs_with - passes_without/runs_without)``: every case has the same
    weight, regardless of its number of runs.

    Args:
        cases: Counts per case; cases with an empty arm are left out.

    Returns:
        The lift from -1 to 1, or None if no case has runs in both arms.
    """
    differences = [case.difference for case in usable(cases)]
    return float(sum(differences) / len(differences)) if differences else None


def check_counts(which: str, passes: int, runs: int) -> None:
    """Raise ``ValueError`` unless passes are whole numbers from 0 to runs."""
    whole = all(isinstance(count, int) for count in (passes, runs))
    if not whole or not 0 <= passes <= runs:
        raise ValueError(
            f"{passes!r} passes of {runs!r} runs {which}: give whole numbers, passes from 0 to runs"
        )
