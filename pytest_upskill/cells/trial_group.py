"""Trials of one skill on one model."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from pytest_upskill.formats.skill import GateRule
from pytest_upskill.trials.result import TrialResult


@dataclass(frozen=True, kw_only=True)
class TrialGroup:
    """Trials of one skill on one model, from which figures are computed."""

    path: str
    """Path of the case file from the rootdir, with which the node ids of its gates begin."""
    case_file: str = ""
    """Path of the case file from the folder that contains ``.upskill``; empty if it is ``path``."""
    skill: str
    model: str
    """Label of the model."""
    resolved: str
    """Full name of the model."""
    place: str = ""
    """Folder that distinguishes skills with the same name; empty if the name is unique."""
    gate: GateRule
    planned: int
    """Number of trials of the cell if all run."""
    trials: tuple[TrialResult, ...]
    ref: str = ""
    """Git ref whose version of the skill is compared; empty for none."""
    history: str = ""
    """Why there is no comparison with ``ref``; empty if there is one."""
    past_unknown: bool = False
    """Whether a comparison is missing that should exist."""
    skipped: tuple[str, ...] = ()
    """Cases that did not run, or not in every arm."""

    @property
    def title(self) -> str:
        """Name of the skill, with its folder if another skill has the same name."""
        return f"{self.skill} ({self.place})" if self.place else self.skill

    @property
    def name(self) -> str:
        """Skill and model, as the subject of a sentence."""
        return f"{self.title} on {self.model}"

    @property
    def unmeasured(self) -> list[str]:
        """Cases that ran in no arm."""
        return sorted({*self.skipped} - {trial.case for trial in self.trials})

    @property
    def missing(self) -> int:
        """Number of runs without a usable reply, in all arms."""
        return sum(len(trial.errors) for trial in self.trials)

    @cached_property
    def served(self) -> list[str]:
        """Model ids that the API returned."""
        return sorted({name for trial in self.trials for name in trial.served})
