"""The terms of a command that has a teacher: who, for how much, and who agrees."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pytest_upskill.model import Model
from pytest_upskill.teacher.work.consent import Consent
from pytest_upskill.teacher.work.decision import Decision
from pytest_upskill.teacher.work.engine import Limits


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What ``generate``, ``cases`` and ``refine`` are all told."""

    teacher: Model
    students: tuple[Model, ...]
    """Empty where none is asked."""
    limits: Limits
    consent: Consent
    dry_run: bool
    state: Path
    """The project's ``.upskill`` folder."""

    @property
    def names(self) -> list[str]:
        """The teacher's full name, then those of the students in alphabetical order."""
        return [self.teacher.resolved, *sorted(student.resolved for student in self.students)]

    def interrupted(self, command: str, skill: str) -> Decision:
        """Return the decision of a command that was interrupted: the first, until it has another.

        Args:
            command: The command.
            skill: Name of the skill.
        """
        return Decision(
            command=command,
            decision="stopped",
            reason="interrupted",
            skill=skill,
            teacher=self.teacher.resolved,
            students=tuple(student.resolved for student in self.students),
        )
