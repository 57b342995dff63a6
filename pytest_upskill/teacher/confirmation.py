"""The confirmation: one look at the hold-out, with fresh and interleaved runs of two versions."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import chain

from pytest_upskill.cases.skill import Case, Skill
from pytest_upskill.project.messages import counted
from pytest_upskill.stats import CaseCounts, lift, runs_needed
from pytest_upskill.teacher.engine import Engine
from pytest_upskill.teacher.holdout import (
    STRIDE,
    Acceptance,
    Comparison,
    Ledger,
    Look,
    RecordedLook,
    decide_acceptance,
    look_number_of,
    next_look_number,
    question_digest,
    recorded_looks,
)
from pytest_upskill.teacher.outcome import CommandOutcome, comparison_lines, figures_of
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
        """The figures of the decision, in words."""
        acceptance = self.acceptance
        text = f"p = {acceptance.p:.2g}, level {acceptance.alpha:.2g} at look {self.look}"
        if not self.cut_failures:
            return text
        cut = counted(self.cut_failures, "answer")
        return f"{text}, {cut} cut at the output limit: raise --upskill-max-tokens"

    @property
    def cut_failures(self) -> int:
        """Number of runs that failed with an answer cut at the output limit."""
        return sum(trial.cut_failures for trial in self.results)

    @property
    def reason(self) -> str:
        """Why the new version is accepted or not, in one sentence."""
        acceptance, figures = self.acceptance, self.evidence
        if acceptance.accepted:
            return f"better on held-out cases: {figures}"
        if acceptance.worse:
            return f"worse for {', '.join(acceptance.worse)}: {figures}"
        if any(
            all(case.passes_without == case.runs_without for case in cases)
            for cases in self.counts.values()
        ):
            return f"not shown to be better, as every held-out case passed before: {figures}"
        needed = self.runs_needed
        more = f"; about {needed} runs per case would show a gain of this size" if needed else ""
        return f"not shown to be better: {figures}{more}"

    @property
    def runs_needed(self) -> int | None:
        """Runs per case and version that would probably show the observed gain; None if unknown."""
        if self.cut_failures:
            return None
        level = 2 * self.acceptance.alpha
        gains = [cases for cases in self.counts.values() if (lift(cases) or 0) > 0]
        needed = [runs for cases in gains if (runs := runs_needed(cases, level))]
        return min(needed, default=None)

    def add_to(self, outcome: CommandOutcome) -> CommandOutcome:
        """Return a command's outcome with the decision and figures of this look."""
        return replace(
            outcome,
            decision="accepted" if self.acceptance.accepted else "not shown",
            reason=self.reason,
            look=self.look,
            p=self.acceptance.p,
            alpha=self.acceptance.alpha,
            figures={student: figures_of(cases) for student, cases in self.counts.items()},
        )


def upcoming_look_number(engine: Engine, cases: Sequence[Case]) -> int:
    """Return the number that a look at held-out cases gets if it compares a version never seen."""
    looks = _ledger(engine).looks(map(question_digest, cases))
    return next_look_number(looks, _recorded_looks(engine, cases))


def _look_of(engine: Engine, contest: Contest) -> Look:
    """Return the look of a contest: the earlier one of the same comparison, else the next one."""
    comparison = Comparison(
        old=_digest(contest.old) if contest.old else "",
        new=_digest(contest.new),
        students=tuple(sorted(student.resolved for student in engine.terms.students)),
        cases=tuple(sorted(map(question_digest, contest.cases))),
        runs=contest.runs,
    )
    looks = _ledger(engine).looks(comparison.cases)
    for look in looks:
        if look.comparison == comparison:
            return look
    recorded = _recorded_looks(engine, contest.cases)
    return Look(
        skill=contest.new.name,
        look=look_number_of(comparison, looks, recorded),
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        comparison=comparison,
    )


def confirm(engine: Engine, contest: Contest) -> Confirmation:
    """Measure both versions on the hold-out once, and decide; print the figures.

    The ledger gets the look before its first request: an interrupted look is continued, and no
    other comparison ever gets its number.

    Raises:
        Stopped: An answer is missing, or a limit would be passed.
        OSError: The ledger cannot be written.
    """
    ledger, look = _ledger(engine), _look_of(engine, contest)
    if look not in ledger.looks(look.comparison.cases):
        ledger.write(look)
    new, old = look_trials(engine, contest, look.look)
    interleaved = [*chain.from_iterable(zip(new, old, strict=True))]
    results = engine.results(interleaved, f"look {look.look}")
    counts = _counts_by_student(results[::2], results[1::2])
    acceptance = decide_acceptance(counts, look=look.look)
    if acceptance.accepted:
        # It must stand as well if the old version's cut answers would have passed.
        against = _counts_by_student(results[::2], results[1::2], old_cut_pass=True)
        acceptance = replace(decide_acceptance(against, look=look.look), worse=())
    concluded = replace(
        look,
        decision="accepted" if acceptance.accepted else "not shown",
        p=acceptance.p,
        alpha=acceptance.alpha,
    )
    if concluded != look:
        ledger.write(concluded)
    names = ("old version", "new version") if contest.old else ("baseline", "with skill")
    engine.say(*comparison_lines(counts, *names, blocks=engine.can_show_blocks))
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


def _counts_by_student(
    new: Sequence[TrialResult], old: Sequence[TrialResult], *, old_cut_pass: bool = False
) -> dict[str, list[CaseCounts]]:
    """Return the counts per case from the results of both versions, in the same order."""
    counts: dict[str, list[CaseCounts]] = {}
    for with_new, with_old in zip(new, old, strict=True):
        cut = with_old.cut_failures if old_cut_pass else 0
        before = with_old.passes + cut, len(with_old.runs)
        pair = CaseCounts(with_new.passes, len(with_new.runs), *before)
        counts.setdefault(with_new.model, []).append(pair)
    return counts


def _recorded_looks(engine: Engine, cases: Sequence[Case]) -> list[RecordedLook]:
    students = engine.terms.students
    hosts = engine.workplace.hosts(students)
    names = {f"{each.provider}:{each.name}@{hosts[each].url}": each.resolved for each in students}
    return recorded_looks(engine.workplace.resources.cache, map(user_message, cases), names)


def _ledger(engine: Engine) -> Ledger:
    return Ledger(engine.terms.state / "looks")


def _digest(skill: Skill) -> str:
    """Return the digest by which recordings name a version."""
    return hashlib.sha256(block_of(skill).encode("utf-8", "replace")).hexdigest()
