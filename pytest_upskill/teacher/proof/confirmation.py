"""The confirmation: one look at the hold-out, with fresh and interleaved runs of two versions."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import chain

from pytest_upskill.formats.skill import Case, Skill
from pytest_upskill.stats import CaseCounts, lift, runs_needed
from pytest_upskill.teacher.proof.acceptance import Acceptance, decide
from pytest_upskill.teacher.proof.decision import Decision
from pytest_upskill.teacher.proof.holdout import question_digest
from pytest_upskill.teacher.proof.ledger import (
    STRIDE,
    Comparison,
    Ledger,
    Look,
    next_look_number,
    recorded_looks,
)
from pytest_upskill.teacher.work.engine import Engine
from pytest_upskill.teacher.work.figures import comparison_lines, figures_of
from pytest_upskill.trials.result import TrialResult
from pytest_upskill.trials.trial import Trial, block_of, user_message

RUNS = 10
"""Runs of each held-out case with each version."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contest:
    """Two versions of a skill, and the held-out cases that decide between them."""

    new: Skill
    old: Skill | None
    """None for no skill."""
    cases: Sequence[Case]
    runs: int = RUNS


@dataclass(frozen=True, slots=True, kw_only=True)
class Confirmation:
    """The result of a look."""

    look: int
    acceptance: Acceptance
    counts: Mapping[str, Sequence[CaseCounts]]
    """Counts per case by the label of the student; *with* is the new version."""
    results: tuple[TrialResult, ...]
    """Results of both versions, case by case."""

    @property
    def evidence(self) -> str:
        """What the decision rests on."""
        decision = self.acceptance
        return f"p = {decision.p:.2g}, level {decision.alpha:.2g} at look {self.look}"

    @property
    def runs_needed(self) -> int | None:
        """Runs per case and version that would probably show the observed gain; None if unknown."""
        level = 2 * self.acceptance.alpha
        gains = [cases for cases in self.counts.values() if (lift(cases) or 0) > 0]
        needed = [runs for cases in gains if (runs := runs_needed(cases, level))]
        return min(needed, default=None)

    def add_to(self, decision: Decision, reason: str) -> Decision:
        """Return a command's decision with that of the look."""
        return replace(
            decision,
            decision="accepted" if self.acceptance.accepted else "not shown",
            reason=reason,
            look=self.look,
            p=self.acceptance.p,
            alpha=self.acceptance.alpha,
            figures={student: figures_of(cases) for student, cases in self.counts.items()},
        )


def next_look(engine: Engine, contest: Contest) -> Look:
    """Return the look that comes next, or that of the same comparison; request nothing."""
    cases, students = contest.cases, engine.terms.students
    comparison = Comparison(
        old=_digest(contest.old) if contest.old else "",
        new=_digest(contest.new),
        students=tuple(sorted(student.resolved for student in students)),
        cases=tuple(sorted(map(question_digest, cases))),
        runs=contest.runs,
    )
    looks = _ledger(engine).looks(comparison.cases)
    for look in looks:
        if look.comparison == comparison:
            return look
    hosts = engine.workplace.hosts(students)
    names = {f"{each.provider}:{each.name}@{hosts[each].url}": each.resolved for each in students}
    recorded = recorded_looks(engine.workplace.resources.cache, map(user_message, cases), names)
    return Look(
        skill=contest.new.name,
        look=next_look_number(comparison, looks, recorded),
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        comparison=comparison,
    )


def confirm(engine: Engine, contest: Contest) -> Confirmation:
    """Measure both versions on the hold-out once, and decide; print the figures.

    The ledger knows of the look before its first request, so that an interrupted look is taken up
    again, and never a second one with the same number.

    Raises:
        Stopped: An answer is missing, or a limit would be passed.
        OSError: The ledger cannot be written.
    """
    ledger, look = _ledger(engine), next_look(engine, contest)
    if look not in ledger.looks(look.comparison.cases):
        ledger.write(look)
    new, old = look_trials(engine, contest, look.look)
    results = engine.results(
        [*chain.from_iterable(zip(new, old, strict=True))], f"look {look.look}"
    )
    counts: dict[str, list[CaseCounts]] = {}
    for new_result, old_result in zip(results[::2], results[1::2], strict=True):
        counts.setdefault(new_result.model, []).append(
            CaseCounts(
                new_result.passes, len(new_result.runs), old_result.passes, len(old_result.runs)
            )
        )
    acceptance = decide(counts, look=look.look)
    concluded = replace(
        look,
        decision="accepted" if acceptance.accepted else "not shown",
        p=acceptance.p,
        alpha=acceptance.alpha,
    )
    if concluded != look:
        ledger.write(concluded)
    names = ("old version", "new version") if contest.old else ("baseline", "with skill")
    engine.say(*comparison_lines(counts, *names, unicode=engine.unicode))
    return Confirmation(
        look=look.look, acceptance=acceptance, counts=counts, results=tuple(results)
    )


def look_trials(engine: Engine, contest: Contest, look: int) -> tuple[list[Trial], list[Trial]]:
    """Return the trials of the new and of the old version, case by case."""
    new, old = (
        engine.trials(
            skill or contest.new,
            contest.cases,
            "with_skill" if skill else "without_skill",
            runs=contest.runs,
            first_run=look * STRIDE,
        )
        for skill in (contest.new, contest.old)
    )
    return new, old


def _ledger(engine: Engine) -> Ledger:
    return Ledger(engine.terms.state / "looks")


def _digest(skill: Skill) -> str:
    """Return the digest of a version by which recordings name it."""
    return hashlib.sha256(block_of(skill).encode("utf-8", "replace")).hexdigest()
