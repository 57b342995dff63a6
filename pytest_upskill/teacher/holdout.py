"""Which cases are held out, and the rule by which a version is accepted on them."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from unicodedata import normalize

from pytest_upskill.cases.skill import Case
from pytest_upskill.grading.grade import sandboxed_of
from pytest_upskill.stats import CaseCounts, holm, look_alpha, regression_test
from pytest_upskill.stats.exact_test import mid_p_tails, significant
from pytest_upskill.teacher.engine import Engine
from pytest_upskill.trials.trial import user_message

SHARE = 0.4
"""Share of the cases that are held out."""

MIN_HELD_OUT = 8
"""Cases that a hold-out needs to decide: with 10 runs of each, +20 points show in 95 % of looks."""


def eligible_cases(
    engine: Engine, cases: Iterable[Case], *, description: bool
) -> tuple[list[Case], dict[str, str]]:
    """Return the cases that all students can be measured on by code, and why the others are not.

    Args:
        engine: Knows the students and compilers.
        cases: The cases of a skill.
        description: Whether the skill's description is measured, by which skill is chosen.
    """
    kept, left_out = list[Case](), dict[str, str]()
    for case in cases:
        if reason := next(_unusable_reasons(engine, case, description), ""):
            left_out[case.id] = reason
        else:
            kept.append(case)
    return kept, left_out


def _unusable_reasons(engine: Engine, case: Case, description: bool) -> Iterator[str]:
    students = engine.terms.students
    yield from filter(None, (case.why_not_for([student.label]) for student in students))
    if description:
        if case.trigger is None:
            yield "does not say which skill should be chosen: add should_trigger"
        return
    if case.skip:
        yield case.skip
    if case.agent_key:
        yield f"'{case.agent_key}' needs an agent"
    if not case.is_answered:
        yield "is about triggers, and has no answer"
    if len(case.judge_checks) == len(case.checks):
        yield "has no check by code"
    if sandboxed := sandboxed_of(case):
        compilers = engine.workplace.resources.compilers()
        yield from filter(None, map(compilers.missing, sandboxed))


def text_digest(text: str) -> str:
    """Return the digest of a text's letters and digits: case, blanks and signs do not change it."""
    letters = filter(str.isalnum, normalize("NFKC", text).casefold())
    return hashlib.sha256("".join(letters).encode()).hexdigest()[:16]


def question_digest(case: Case) -> str:
    """Return the digest of what a case asks, whatever its id and its checks are."""
    return text_digest(user_message(case))


def is_held_out(case: Case) -> bool:
    """Return whether a case is held out, which depends on its question alone and never changes."""
    return int(question_digest(case), 16) / 16**16 < SHARE


def split_cases(cases: Iterable[Case]) -> tuple[list[Case], list[Case]]:
    """Return the train cases and the held-out cases."""
    parts: tuple[list[Case], list[Case]] = [], []
    for case in cases:
        parts[is_held_out(case)].append(case)
    return parts


def missing_cases(held_out: int) -> int:
    """Estimate how many more cases would fill the hold-out, as each has a chance of ``SHARE``."""
    lacking = max(0, MIN_HELD_OUT - held_out)
    return -int(-lacking // SHARE)


ALPHA = 0.05
"""Probability that a hold-out ever accepts a version that is no better, over all looks."""

WORSE = 0.05
"""Significance at which a student counts as worse, which rules a version out."""

_SESSIONS = 400
_RATE = 0.5
"""Mean pass rate with the old version."""
SPREADS = {"nearly always pass or fail": 0.5, "pass now and then": 4.0}
"""Concentration of the Beta distribution of the pass rates of cases, by how most of them behave."""


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


@cache
def power(
    gain: float, *, cases: int, runs: int, look: int, students: int = 1, spread: float = 0.5
) -> float:
    """Estimate how often a version that is truly better would be accepted.

    The gain repairs the same share of the failures everywhere. The same arguments return the same
    figure.

    Args:
        gain: The true difference in the mean pass rate, a fraction.
        cases: Held-out cases.
        runs: Runs of each case with each version.
        look: Number of the look, from 1.
        students: Number of students; one of them gains.
        spread: Concentration of the Beta distribution from which pass rates are drawn.
    """
    chance = random.Random(f"{gain} {cases} {runs} {look} {students} {spread}")  # noqa: S311  a simulation
    level = alpha_of_look(look) / students
    accepted = 0
    for _ in range(_SESSIONS):
        old = [chance.betavariate(_RATE * spread, (1 - _RATE) * spread) for _ in range(cases)]
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
