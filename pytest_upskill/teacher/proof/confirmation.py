"""The confirmation: one look at the hold-out, with fresh and interleaved runs of two versions."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import chain
from typing import Any

from pytest_upskill.formats.skill import Case, Skill
from pytest_upskill.model import Model
from pytest_upskill.stats import CaseCounts, lift, lift_interval, runs_needed
from pytest_upskill.teacher.proof.acceptance import Acceptance, decide
from pytest_upskill.teacher.proof.holdout import digest_of, holdout_digest
from pytest_upskill.teacher.proof.ledger import (
    STRIDE,
    Comparison,
    Ledger,
    Look,
    number_of_look,
    recorded_looks,
)
from pytest_upskill.teacher.work.engine import Engine
from pytest_upskill.teacher.work.measure import compared, counts_of, trials_of
from pytest_upskill.teacher.work.picture import mean_rate
from pytest_upskill.trials.result import TrialResult
from pytest_upskill.trials.trial import Trial, request

RUNS = 10
"""Runs of each held-out case with each version."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contest:
    """Two versions of a skill, and who decides between them."""

    new: Skill
    old: Skill | None
    """None for no skill."""
    cases: tuple[Case, ...]
    """The held-out cases."""
    students: tuple[Model, ...]
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
    def figures(self) -> dict[str, Any]:
        """Pass rates, lift and its interval by student, as JSON."""
        return {student: _figures(cases) for student, cases in self.counts.items()}

    @property
    def runs_needed(self) -> int | None:
        """Runs per case and version that would probably show the observed gain; None if unknown."""
        level = 2 * self.acceptance.alpha
        gains = [cases for cases in self.counts.values() if (lift(cases) or 0) > 0]
        needed = [runs for cases in gains if (runs := runs_needed(cases, level))]
        return min(needed, default=None)


def look_ahead(engine: Engine, ledger: Ledger, contest: Contest) -> int:
    """Return the number that a look has, without requesting anything."""
    return number_of_look(
        _comparison(contest),
        ledger.looks(map(digest_of, contest.cases)),
        _recorded(engine, contest),
    )


def confirm(engine: Engine, ledger: Ledger, contest: Contest) -> Confirmation:
    """Measure both versions on the hold-out once, and decide.

    The ledger knows of the look before its first request, so that an interrupted look is taken up
    again, and never a second one with the same number.

    Raises:
        Stopped: An answer is missing, or a limit would be passed.
        OSError: The ledger cannot be written.
    """
    look = look_ahead(engine, ledger, contest)
    entry = Look(
        skill=contest.new.name,
        look=look,
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        comparison=_comparison(contest),
    )
    holdout = holdout_digest(contest.cases)
    known = [each for each in ledger.looks(entry.comparison.cases) if each.look == look]
    same = next((each for each in known if each.comparison == entry.comparison), None)
    if same is None:
        ledger.write(holdout, entry)
    new, old = trials_of_look(engine, contest, look)
    results = engine.results([*chain.from_iterable(zip(new, old, strict=True))], f"look {look}")
    counts = compared(counts_of(results[::2]), counts_of(results[1::2]))
    acceptance = decide(counts, look=look)
    decided = replace(
        same or entry,
        decision="accepted" if acceptance.accepted else "not shown",
        p=acceptance.p,
        alpha=acceptance.alpha,
    )
    if decided != same:
        ledger.write(holdout, decided)
    return Confirmation(look=look, acceptance=acceptance, counts=counts, results=tuple(results))


def trials_of_look(engine: Engine, contest: Contest, look: int) -> tuple[list[Trial], list[Trial]]:
    """Return the trials of the new and of the old version, case by case."""

    def trials(skill: Skill | None) -> list[Trial]:
        return trials_of(
            skill or contest.new,
            contest.cases,
            contest.students,
            arm="without_skill" if skill is None else "with_skill",
            runs=contest.runs,
            first_run=look * STRIDE,
            max_tokens=engine.workplace.max_tokens,
        )

    return trials(contest.new), trials(contest.old)


def _comparison(contest: Contest) -> Comparison:
    return Comparison(
        old=_block_digest(contest.old, contest),
        new=_block_digest(contest.new, contest),
        students=tuple(sorted(model.resolved for model in contest.students)),
        cases=tuple(sorted(map(digest_of, contest.cases))),
        runs=contest.runs,
    )


def _block_digest(skill: Skill | None, contest: Contest) -> str:
    """Return the digest of a version by which recordings name it."""
    if skill is None:
        return ""
    (trial, *_) = trials_of(
        skill, contest.cases[:1], contest.students[:1], arm="with_skill", runs=1, max_tokens=1
    )
    block = trial.skill_block
    return hashlib.sha256(block.encode("utf-8", "replace")).hexdigest()


def _recorded(engine: Engine, contest: Contest) -> Iterator[Any]:
    hosts = engine.workplace.hosts(contest.students)
    names = {
        f"{model.provider}:{model.name}@{hosts[model].url}": model.resolved
        for model in contest.students
    }
    trials = trials_of(
        contest.new, contest.cases, contest.students, arm="without_skill", runs=1, max_tokens=1
    )
    questions = {request(trial, 0).user for trial in trials}
    yield from recorded_looks(engine.workplace.resources.cache, questions, names)


def _figures(cases: Sequence[CaseCounts]) -> dict[str, Any]:
    interval = lift_interval(cases)
    return {
        "before": mean_rate([(case.passes_without, case.runs_without) for case in cases]),
        "after": mean_rate([(case.passes_with, case.runs_with) for case in cases]),
        "lift": lift(cases),
        "low": interval and interval.low,
        "high": interval and interval.high,
    }
