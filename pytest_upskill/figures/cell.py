"""A cell, one skill on one model: its trials, and what they measure."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property

from pytest_upskill.figures.lift import Lift
from pytest_upskill.figures.trial_group import TrialGroup
from pytest_upskill.figures.triggers import Triggers


@dataclass(frozen=True, kw_only=True)
class Cell(TrialGroup):
    """The trials of one skill on one model, which measure its lift or how often it is chosen."""

    @cached_property
    def lift(self) -> Lift:
        """What the skill is worth once it is in the context; empty if a model chooses."""
        return Lift(self)

    @cached_property
    def triggers(self) -> Triggers:
        """How often the skill is chosen; empty unless a model chooses."""
        return Triggers(self)

    @property
    def why_undecidable(self) -> str | None:
        """Why no decision about the cell is possible, None if one is."""
        if len(self.trials) != self.planned:
            return f"only {len(self.trials)} of {self.planned} tests ran"
        return (self.triggers if self.chooses else self.lift).why_undecidable


def with_places(cells: Iterable[Cell]) -> list[Cell]:
    """Return the cells, with ``place`` set for skills that share a name."""
    cells = list(cells)
    paths = Counter(skill for skill, _ in {(cell.skill, cell.path) for cell in cells})
    return [replace(cell, place=cell.path if paths[cell.skill] > 1 else "") for cell in cells]
