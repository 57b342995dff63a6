"""Which cases are held out, and the rule by which a version is accepted on them."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import NormalDist
from unicodedata import normalize

from pytest_upskill.cases.skill import Case
from pytest_upskill.grading.grade import sandboxed_of
from pytest_upskill.stats import CaseCounts, holm, look_alpha, regression_test
from pytest_upskill.stats.exact_test import mid_p_tails, significant
from pytest_upskill.teacher.engine import Engine
from pytest_upskill.trials.needs import why_skipped
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
    yield from filter(None, (case.why_not_for([student.label]) for student in engine.students))
    if description and case.trigger is None:
        yield "does not say which skill should be chosen"
    if not description and not case.is_answered:
        yield "is about triggers, and has no answer"
    # Without the cure, which would help only a test run.
    skipped = why_skipped(case, chooses=description, has_judge=False, is_agent=False) or ""
    yield from filter(None, [skipped.partition(":")[0]])
    if not description and (sandboxed := sandboxed_of(case)):
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


ALPHA = 0.05
"""Probability that a hold-out ever accepts a version that is no better, over all looks."""

WORSE = 0.05
"""Significance at which a student counts as worse, which rules a version out."""

_TINY_P = 0.0001
_SPREAD = 4.0
"""Concentration of the Beta distribution of pass rates where most cases pass now and then."""


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


def decide_acceptance(students: Mapping[str, Sequence[CaseCounts]], *, look: int) -> Acceptance:
    """Decide whether a new version is better for a student and worse for none.

    Args:
        students: Counts per held-out case by student; *with* is the new version, *without* the
            old one.
        look: Number of the look at the hold-out, from 1.
    """
    p_values = [mid_p_tails(cases)[1] for cases in students.values()]
    smallest = min(holm(p_values), default=1.0)
    level = look_alpha(look, ALPHA)
    worse = tuple(
        name for name, cases in students.items() if significant(regression_test(cases), WORSE)
    )
    return Acceptance(
        accepted=significant(smallest, level) and not worse, p=smallest, alpha=level, worse=worse
    )


def p_text(p: float) -> str:
    """Return ``p = 0.012``, or that it is too small to matter how small."""
    return f"p = {p:.2g}" if p >= _TINY_P else "p < 0.0001"


def power(
    gain: float, *, cases: int, runs: int, look: int, students: int = 1, spread: float = _SPREAD
) -> float:
    """Estimate how often a version that is truly better would be accepted.

    Half of the runs with the old version pass, and the gain repairs the same share of the failures
    of each case. It is a normal approximation of the test, within 5 points of simulations with 10
    runs of each case.

    Args:
        gain: The true difference in the mean pass rate, a fraction.
        cases: Held-out cases.
        runs: Runs of each case with each version.
        look: Number of the look, from 1.
        students: Number of students; one of them gains.
        spread: Concentration of the Beta distribution of pass rates with the old version.
    """
    mean_square = 0.25 + 0.25 / (spread + 1)
    left = max(0.0, 1 - 2 * gain)

    def variance(share: float) -> float:
        """Return that of a run, mean over cases, if a share of the failures is left."""
        return share / 2 - share**2 * mean_square

    # The test takes the versions for equal, so that each has half of the gain.
    tested = sqrt(2 * variance((1 + left) / 2) / (runs * cases))
    true = sqrt((variance(1) + variance(left)) / (runs * cases))
    normal = NormalDist()
    return normal.cdf((gain + normal.inv_cdf(look_alpha(look, ALPHA) / students) * tested) / true)
