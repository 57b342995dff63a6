"""What the gate and the trigger gate have in common: a decision about a cell, and its report."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Generic, Literal, TypeVar

from pytest_upskill.cells.thresholds import Thresholds
from pytest_upskill.cells.trial_group import TrialGroup

if TYPE_CHECKING:
    from pytest_upskill.cells.comparison import Comparison

AnyCell = TypeVar("AnyCell", bound=TrialGroup)
AnyComparison = TypeVar("AnyComparison", bound="Comparison")


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision(Generic[AnyCell, AnyComparison]):
    """Decision about one cell."""

    kind: ClassVar[str]
    """The first word of its name."""

    cell: AnyCell
    outcome: Literal["passed", "failed", "skipped"]
    text: str
    """Complete sentence, one line."""
    comparison: AnyComparison | None = None
    """Comparison with the baseline or the git ref; None for none."""
    misses_data: bool = False
    """Whether missing runs prevent a decision."""

    @property
    def nodeid(self) -> str:
        """Node id, such as ``path::gate[model]``."""
        return f"{self.cell.path}::{self.name}"

    @property
    def name(self) -> str:
        """The part of the node id after the path."""
        return f"{self.kind}[{self.cell.model}]"

    @property
    def details(self) -> list[str]:
        """Lines below the text."""
        return []

    @property
    def report(self) -> str:
        """Text, details and notes, one per line."""
        notes = () if self.comparison is None else self.comparison.notes
        return "\n".join([self.text, *self.details, *notes])


def weighed(problems: Iterable[tuple[str, bool]]) -> tuple[str, str]:
    """Return the problems that fail a gate, and those that leave it open.

    Args:
        problems: Each problem, and whether it is certain whatever the missing runs' results.

    Returns:
        The certain problems, "" if there are none; and, only then, those that missing runs decide.
    """
    found = dict(problems)
    certain = "; ".join(problem for problem, sure in found.items() if sure)
    return certain, "" if certain else "; ".join(found)


def regression(
    comparison: Comparison | None, thresholds: Thresholds, subject: str
) -> Iterator[tuple[str, bool]]:
    """Yield the problem that a cell has become worse, or could have because of missing runs.

    Args:
        comparison: Comparison with the cell's past, None for none.
        thresholds: Thresholds from the options.
        subject: What has become worse.

    Yields:
        The problem, and whether it is certain whatever the missing runs' results.
    """
    if comparison is None or "regression" not in thresholds.fail_on:
        return
    if comparison.would_regress(worse=True):
        yield f"{subject} {comparison.headline}", comparison.would_regress(worse=False)
