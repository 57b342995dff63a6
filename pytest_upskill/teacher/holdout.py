"""Which cases are held out, the rule by which a version is accepted on them, and the looks at them.

A ledger counts the looks: how often versions were compared on a hold-out.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from pydantic import TypeAdapter, ValidationError

from pytest_upskill.answers.cache import Cache
from pytest_upskill.cases.skill import Case
from pytest_upskill.grading.grade import sandboxed_of
from pytest_upskill.project.files import read_state, write_file
from pytest_upskill.stats import CaseCounts, holm, look_alpha, regression_test
from pytest_upskill.stats.exact_test import mid_p_tails, significant
from pytest_upskill.teacher.engine import Engine

SHARE = 0.4
"""Share of the cases that are held out."""

MIN_HELD_OUT = 8
"""Cases that a hold-out needs to decide: with 10 runs of each, +20 points show in 95 % of looks."""


def eligible_cases(engine: Engine, cases: Iterable[Case]) -> tuple[list[Case], dict[str, str]]:
    """Return the cases that all students can be measured on by code, and why the others are not."""
    kept, left_out = list[Case](), dict[str, str]()
    for case in cases:
        if reason := next(_ineligible_reasons(engine, case), ""):
            left_out[case.id] = reason
        else:
            kept.append(case)
    return kept, left_out


def _ineligible_reasons(engine: Engine, case: Case) -> Iterator[str]:
    if case.skip:
        yield case.skip
    if case.agent_key:
        yield f"'{case.agent_key}' needs an agent"
    if not case.is_answered:
        yield "is about triggers, and has no answer"
    if len(case.judge_checks) == len(case.checks):
        yield "has no check by code"
    students = engine.terms.students
    yield from filter(None, (case.why_not_for([student.label]) for student in students))
    if sandboxed := sandboxed_of(case):
        compilers = engine.workplace.resources.compilers()
        yield from filter(None, map(compilers.missing, sandboxed))


def is_held_out(case_id: str) -> bool:
    """Return whether a case is held out, which depends on its id alone and never changes."""
    number = int.from_bytes(hashlib.sha256(case_id.encode()).digest()[:8], "big")
    return number / 2**64 < SHARE


def split_cases(cases: Iterable[Case]) -> tuple[list[Case], list[Case]]:
    """Return the train cases and the held-out cases."""
    cases = list(cases)
    return (
        [case for case in cases if not is_held_out(case.id)],
        [case for case in cases if is_held_out(case.id)],
    )


def missing_cases(held_out: int) -> int:
    """Estimate how many more cases would fill the hold-out, as each has a chance of ``SHARE``."""
    lacking = max(0, MIN_HELD_OUT - held_out)
    return -int(-lacking // SHARE)


def question_digest(case: Case) -> str:
    """Return the digest of a case's id and question; checks may be fixed without a new digest."""
    return digest([case.id, case.input, {file.name: file.text for file in case.files}])


def digest(value: object) -> str:
    """Return the digest of a JSON value, as the ledger writes it."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]


ALPHA = 0.05
"""Probability that a hold-out ever accepts a version that is no better, over all looks."""

WORSE = 0.05
"""Significance at which a student counts as worse, which rules a version out."""

_SESSIONS = 400
_RATE = 0.5
"""Mean pass rate with the old version."""
_SPREAD = 0.5
"""Concentration of the Beta distribution of pass rates: most cases nearly always pass or fail."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Acceptance:
    """Whether a version is accepted, and the figures that decide it."""

    accepted: bool
    p: float
    """Smallest one-sided mid-p over the students, adjusted by Holm's method."""
    alpha: float
    """The significance level of this look."""
    worse: tuple[str, ...]
    """Students that do worse with the new version."""


def alpha_of_look(look: int) -> float:
    """Return the significance level of a look at a hold-out; those of all looks sum to ``ALPHA``.

    Args:
        look: Number of the look at the hold-out, from 1.
    """
    return look_alpha(look, ALPHA)


def decide_acceptance(students: Mapping[str, Sequence[CaseCounts]], *, look: int) -> Acceptance:
    """Decide whether a new version is better for a student and worse for none.

    Args:
        students: Counts per held-out case by student; *with* is the new version, *without* the
            old one.
        look: Number of the look at the hold-out, from 1.
    """
    p_values = [mid_p_tails(cases)[1] for cases in students.values()]
    smallest = min(holm(p_values), default=1.0)
    level = alpha_of_look(look)
    worse = tuple(
        name for name, cases in students.items() if significant(regression_test(cases), WORSE)
    )
    return Acceptance(
        accepted=significant(smallest, level) and not worse, p=smallest, alpha=level, worse=worse
    )


def power(gain: float, *, cases: int, runs: int, look: int, students: int = 1) -> float:
    """Estimate how often a version that is truly better would be accepted.

    Pass rates are drawn from a U-shaped Beta distribution; the gain repairs the same share of the
    failures everywhere. The same arguments return the same figure.

    Args:
        gain: The true difference in the mean pass rate, a fraction.
        cases: Held-out cases.
        runs: Runs of each case with each version.
        look: Number of the look, from 1.
        students: Number of students; one of them gains.
    """
    chance = random.Random(f"{gain} {cases} {runs} {look} {students} {_RATE}")  # noqa: S311  a simulation
    level = alpha_of_look(look) / students
    accepted = 0
    for _ in range(_SESSIONS):
        old = [chance.betavariate(_RATE * _SPREAD, (1 - _RATE) * _SPREAD) for _ in range(cases)]
        new = improved_rates(old, gain)
        counts = [
            CaseCounts(
                draw_passes(chance, better, runs), runs, draw_passes(chance, before, runs), runs
            )
            for better, before in zip(new, old, strict=True)
        ]
        accepted += mid_p_tails(counts)[1] <= level
    return accepted / _SESSIONS


def improved_rates(rates: Sequence[float], gain: float) -> list[float]:
    """Return pass rates whose mean is higher by ``gain``, or 1 where that is impossible."""
    room = 1 - sum(rates) / len(rates)
    share = min(1.0, gain / room) if room > 0 else 0.0
    return [rate + (1 - rate) * share for rate in rates]


def draw_passes(chance: random.Random, rate: float, runs: int) -> int:
    """Draw the number of passes of some runs."""
    return sum(chance.random() < rate for _ in range(runs))


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
        holdout, name = digest(look.comparison.cases), digest(asdict(look.comparison))
        data = _LOOK.dump_json(look, indent=1) + b"\n"
        write_file(self.folder / holdout / f"{look.look:03}-{name}.json", data, mode=0o666)

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
