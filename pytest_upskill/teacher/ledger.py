"""The ledger of looks: how often versions were compared on a hold-out."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import TypeAdapter, ValidationError

from pytest_upskill.answers.cache import Cache
from pytest_upskill.project.files import read_state, write_file
from pytest_upskill.teacher.holdout import digest

STRIDE = 1000
"""Runs of look number j are numbered from j times this, so that every look has fresh answers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """What a look compares; repeating the same comparison is not a new look."""

    old: str
    """Digest of the old version as models see it, empty for no skill."""
    new: str
    students: tuple[str, ...]
    """Full names of the students, sorted."""
    cases: tuple[str, ...]
    """Digests of the held-out cases, sorted."""
    runs: int
    """Runs of each case with each version."""

    @property
    def digest(self) -> str:
        """A digest of all fields, for the name of the file."""
        values = [self.old, self.new, self.students, self.cases, self.runs]
        return hashlib.sha256(json.dumps(values).encode()).hexdigest()[:12]


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """The file of a look, written before its first request."""

    format: Literal[1] = 1
    skill: str
    look: int
    """Its number, from 1."""
    date: str
    """When it began, as ISO 8601."""
    comparison: Comparison
    decision: Literal["accepted", "not shown", "open"] = "open"
    p: float | None = None
    alpha: float | None = None


_LOOK = TypeAdapter(Look)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedLook:
    """A look as the recordings of its answers show it."""

    look: int
    skills: frozenset[str]
    """Digests of the versions, "" for no skill."""
    students: frozenset[str]


class Ledger:
    """The looks at all hold-outs of a project: a file each, in a folder that is committed.

    Args:
        folder: Made when first written to.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def looks(self, cases: Iterable[str]) -> list[Look]:
        """Read the looks at any of the held-out cases, even if it had only some of them."""
        held_out = set(cases)
        return [look for look in self._read_all() if not held_out.isdisjoint(look.comparison.cases)]

    def write(self, look: Look) -> None:
        """Write the file of a look, in a folder for its hold-out.

        Raises:
            OSError: It cannot be written.
        """
        holdout = digest(look.comparison.cases)
        name = f"{look.look:03}-{look.comparison.digest}.json"
        data = _LOOK.dump_json(look, indent=1) + b"\n"
        write_file(self.folder / holdout / name, data, mode=0o666)

    def _read_all(self) -> Iterator[Look]:
        for file in sorted(self.folder.glob("*/*.json")):
            with suppress(OSError, ValidationError):
                yield _LOOK.validate_json(read_state(file))


def next_look_number(looks: Sequence[Look], recorded: Iterable[RecordedLook]) -> int:
    """Return the number of the next look: one more than any that is known.

    A deleted ledger forgets nothing, as long as the recordings are there.

    Args:
        looks: The looks in the ledger.
        recorded: The looks in the recordings.
    """
    # Two branches may each have had their look number 1.
    numbers = [*(look.look for look in looks), *(each.look for each in recorded)]
    return max(len(looks), *numbers, 0) + 1


def look_number_of(
    comparison: Comparison, looks: Sequence[Look], recorded: Sequence[RecordedLook]
) -> int:
    """Return the number of a comparison's look, which the ledger does not have.

    A look that only the recordings have is this one if versions and students are the same.

    Args:
        comparison: The versions, cases and students.
        looks: The looks in the ledger.
        recorded: The looks in the recordings.
    """
    versions = frozenset({comparison.old, comparison.new})
    in_ledger = {look.look for look in looks}
    for recorded_look in recorded:
        if (
            recorded_look.look not in in_ledger
            and recorded_look.skills == versions
            and recorded_look.students == set(comparison.students)
        ):
            return recorded_look.look
    return next_look_number(looks, recorded)


def recorded_looks(
    cache: Cache, questions: Iterable[str], students: Mapping[str, str]
) -> list[RecordedLook]:
    """Return the looks whose answers were recorded.

    Args:
        cache: The recordings.
        questions: The message that was sent for each held-out case.
        students: Full names by the names under which recordings know the models.
    """
    sent = set(questions)
    found: dict[int, tuple[set[str], set[str]]] = defaultdict(lambda: (set(), set()))
    for _, recording in cache.recordings():
        run = recording.request.get("run", 0)
        user = recording.request.get("user", [])
        if run < STRIDE or "\n".join(user) not in sent:
            continue
        skills, models = found[run // STRIDE]
        skills.add(recording.request.get("skill", ""))
        name = str(recording.request.get("model", ""))
        url = recording.request.get("url", "")
        models.add(students.get(f"{name}@{url}", name))
    return [
        RecordedLook(look=look, skills=frozenset(skills), students=frozenset(models))
        for look, (skills, models) in sorted(found.items())
    ]
