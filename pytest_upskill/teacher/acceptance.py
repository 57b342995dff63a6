"""Which cases are held out, the rule by which a version is accepted on them, and its looks."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import sqrt
from pathlib import Path
from statistics import NormalDist
from typing import Literal
from unicodedata import normalize

from pydantic import TypeAdapter, ValidationError

from pytest_upskill.answers.recordings import Cache
from pytest_upskill.answers.resources import WorkError
from pytest_upskill.cases.skill import Case
from pytest_upskill.grading.grade import sandboxed_of
from pytest_upskill.project.digest import digest_of
from pytest_upskill.project.files import read_state, write_file
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
    engine: Engine, cases: Sequence[Case], *, description: bool
) -> tuple[list[Case], dict[str, str]]:
    """Return the cases that all students can be measured on by code, and why the others are not.

    Args:
        engine: Knows the students and compilers.
        cases: The cases of a skill.
        description: Whether the skill's description is measured, by which skill is chosen.
    """
    found = ((case.id, next(_unusable_reasons(engine, case, description), "")) for case in cases)
    left_out = {name: reason for name, reason in found if reason}
    return [case for case in cases if case.id not in left_out], left_out


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
    return digest_of("".join(letters))


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
    """Decide whether a new version is better for a student, and significantly worse for none.

    Args:
        students: Counts per held-out case by student; *with* is the new version, *without* the
            old one.
        look: Number of the look at the hold-out, from 1.
    """
    smallest = min(holm([mid_p_tails(cases)[1] for cases in students.values()]), default=1.0)
    level = look_alpha(look, ALPHA)
    worse = tuple(name for name, cases in students.items() if significant(regression_test(cases)))
    return Acceptance(
        accepted=significant(smallest, level) and not worse, p=smallest, alpha=level, worse=worse
    )


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


# The looks: how often versions were compared on held-out questions, which no detour may hide.
#
# A look belongs to the questions that it shows, by their text: not to the skill, to the ids or to
# the checks of the cases. The ledger is a file for each look, in a folder that is committed. Where
# it lacks looks, the recordings of their answers tell. Whoever deletes both, and commits that,
# starts anew: this is not prevented.

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
        name = digest_of(json.dumps(asdict(look.comparison)))
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
