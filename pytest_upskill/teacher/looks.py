"""The looks: how often versions were compared on held-out questions, which no detour may hide.

A look belongs to the questions that it shows, by their text: not to the skill, to the ids or to
the checks of the cases. The ledger is a file for each look, in a folder that is committed. Where it
lacks looks, the recordings of their answers tell. Whoever deletes both, and commits that, starts
anew: this is not prevented.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from pydantic import TypeAdapter, ValidationError

from pytest_upskill.answers.recordings import Cache
from pytest_upskill.answers.resources import WorkError
from pytest_upskill.project.files import read_state, write_file
from pytest_upskill.teacher.acceptance import text_digest

STRIDE = 1000
"""Runs of a look are numbered from a multiple of this, so that every look has fresh answers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionComparison:
    """What a look compares; repeating it with the same answers is not a new look."""

    old: str
    """Digest of the old version as models see it, empty for no skill."""
    new: str
    students: tuple[str, ...]
    """Full names of the students, sorted."""
    questions: tuple[str, ...]
    """Digests of the held-out questions, sorted."""
    checks: str
    """Digest of the checks: with others, the same answers would decide something else."""
    runs: int
    """Runs of each case with each version."""
    task: str = ""
    """Digest of the task for which the cases were made, empty if they were there before."""


LookDecision = Literal["accepted", "not shown", "open"]
"""What a look decided; ``open`` as long as answers are missing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptLook:
    """The file of a look, written before its first request."""

    format: Literal[1] = 1
    skill: str
    look: int
    """Its number, from 1, which sets its level."""
    draw: int
    """Its answers are the runs from this times `STRIDE`."""
    date: str
    """When it began, as ISO 8601."""
    comparison: VersionComparison
    answers: int = 0
    """How many of its answers were recorded when this was written."""
    decision: LookDecision = "open"
    p: float | None = None
    alpha: float | None = None


_LOOK = TypeAdapter(KeptLook)


@dataclass(frozen=True, slots=True)
class Ledger:
    """The looks of a project."""

    folder: Path
    """Made when first written to."""
    cache: Cache
    """The recordings of answers."""

    def looks(self, comparison: VersionComparison) -> list[KeptLook]:
        """Read the looks at a question of a comparison or at cases for its task, oldest first.

        Raises:
            WorkError: A file cannot be read, so that its look would not be counted.
        """
        looks, questions = list[KeptLook](), set(comparison.questions)
        for file in sorted(self.folder.glob("*.json")):
            try:
                look = _LOOK.validate_json(read_state(file))
            except (OSError, ValidationError) as error:
                why = error.strerror if isinstance(error, OSError) else "not what was written"
                cure = "restore it with git, as the number of looks sets the level of the next"
                raise WorkError(f"{file}: {why}: {cure}") from None
            of_task = comparison.task == look.comparison.task != ""
            if of_task or not questions.isdisjoint(look.comparison.questions):
                looks.append(look)
        return sorted(looks, key=lambda look: (look.date, look.draw))

    def write(self, look: KeptLook) -> None:
        """Write the file of a look.

        Raises:
            OSError: It cannot be written.
        """
        name = hashlib.sha256(json.dumps(asdict(look.comparison)).encode()).hexdigest()[:16]
        data = _LOOK.dump_json(look, indent=1) + b"\n"
        write_file(self.folder / f"{look.draw:03}-{name}.json", data, mode=0o666)

    def next_look(self, skill: str, comparison: VersionComparison, date: str) -> KeptLook:
        """Return the look that a comparison gets if it is a new one.

        Its number is one more than the most looks of any of its questions, or at cases for its
        task. Looks that accepted the old version, or the ones that this came from, are not counted:
        what was shown to be better takes nothing from the level of what follows.
        """
        looks, recorded = self.looks(comparison), self._recorded_draws(comparison.questions)
        lineage = _lineage(comparison.old, looks)
        counted = [look for look in looks if look not in lineage]
        most = sum(comparison.task == look.comparison.task != "" for look in counted)
        for question, draws in recorded.items():
            listed = {look.draw for look in looks if question in look.comparison.questions}
            seen = sum(question in look.comparison.questions for look in counted)
            most = max(most, seen + len(draws - listed))
        taken = {look.draw for look in looks}.union(*recorded.values())
        return KeptLook(
            skill=skill,
            look=most + 1,
            draw=max(taken, default=0) + 1,
            date=date,
            comparison=comparison,
        )

    def _recorded_draws(self, questions: Iterable[str]) -> Mapping[str, set[int]]:
        """Return which looks have recorded answers to each question."""
        found: dict[str, set[int]] = {question: set() for question in questions}
        for _, recording in self.cache.recordings():
            draw = recording.request.get("run", 0) // STRIDE
            if draw and (asked := text_digest("\n".join(recording.request["user"]))) in found:
                found[asked].add(draw)
        return found


def _lineage(version: str, looks: Sequence[KeptLook]) -> list[KeptLook]:
    """Return the looks that accepted a version, and those that accepted what it came from."""
    found, versions = list[KeptLook](), {version}
    for look in reversed(looks):
        if look.decision == "accepted" and look.comparison.new in versions:
            found.append(look)
            versions.add(look.comparison.old)
    return found
