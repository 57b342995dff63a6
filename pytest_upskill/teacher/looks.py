"""The looks: how often versions were compared on held-out questions, which no detour may hide.

A look belongs to the questions that it shows, by their text: not to the skill, to the ids or to the
checks of the cases. The ledger is a file for each look, in a folder that is committed. Where it
lacks looks, the recordings of their answers tell. Whoever deletes both, and commits that, starts
anew: this is not prevented.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from pydantic import TypeAdapter, ValidationError

from pytest_upskill.answers.cache import Cache
from pytest_upskill.project.files import read_state, write_file
from pytest_upskill.teacher.holdout import text_digest

STRIDE = 1000
"""Runs of a look are numbered from a multiple of this, so that every look has fresh answers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """The file of a look, written before its first request."""

    format: Literal[1] = 1
    skill: str
    look: int
    """Its number, from 1, which sets its level."""
    draw: int
    """Its answers are the runs from this times `STRIDE`."""
    date: str
    """When it began, as ISO 8601."""
    comparison: Comparison
    answers: int = 0
    """How many of its answers were recorded when this was written."""
    decision: Literal["accepted", "not shown", "open"] = "open"
    p: float | None = None
    alpha: float | None = None

    def is_of(self, comparison: Comparison) -> bool:
        """Return whether it shows a question of a comparison, or cases for the same task."""
        mine = self.comparison
        same_task = bool(mine.task) and mine.task == comparison.task
        return same_task or not set(mine.questions).isdisjoint(comparison.questions)


_LOOK = TypeAdapter(Look)


class Ledger:
    """The looks of a project.

    Args:
        folder: Made when first written to.
        cache: The recordings of answers.
    """

    def __init__(self, folder: Path, cache: Cache) -> None:
        self.folder = folder
        self._cache = cache

    def looks(self, comparison: Comparison) -> list[Look]:
        """Read the looks at any of the questions of a comparison, the oldest first."""
        looks = [look for look in self._read_all() if look.is_of(comparison)]
        return sorted(looks, key=lambda look: (look.date, look.draw))

    def write(self, look: Look) -> None:
        """Write the file of a look.

        Raises:
            OSError: It cannot be written.
        """
        name = hashlib.sha256(json.dumps(asdict(look.comparison)).encode()).hexdigest()[:16]
        data = _LOOK.dump_json(look, indent=1) + b"\n"
        write_file(self.folder / f"{look.draw:03}-{name}.json", data, mode=0o666)

    def next_look(self, skill: str, comparison: Comparison, date: str) -> Look:
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
        return Look(
            skill=skill,
            look=most + 1,
            draw=max(taken, default=0) + 1,
            date=date,
            comparison=comparison,
        )

    def _recorded_draws(self, questions: Iterable[str]) -> Mapping[str, set[int]]:
        """Return which looks have recorded answers to each question."""
        found: dict[str, set[int]] = {question: set() for question in questions}
        for _, recording in self._cache.recordings():
            draw = recording.request.get("run", 0) // STRIDE
            if draw and (asked := text_digest("\n".join(recording.request["user"]))) in found:
                found[asked].add(draw)
        return found

    def _read_all(self) -> Iterator[Look]:
        for file in sorted(self.folder.glob("*.json")):
            with suppress(OSError, ValidationError):
                yield _LOOK.validate_json(read_state(file))


def _lineage(version: str, looks: Sequence[Look]) -> list[Look]:
    """Return the looks that accepted a version, and those that accepted what it came from."""
    found, versions = list[Look](), {version}
    for look in reversed(looks):
        if look.decision == "accepted" and look.comparison.new in versions:
            found.append(look)
            versions.add(look.comparison.old)
    return found
