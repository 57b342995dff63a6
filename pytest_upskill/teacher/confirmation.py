"""The confirmation: one look at the hold-out, with fresh and interleaved runs of two versions."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import chain

from pytest_upskill.cases.catalogue import listed
from pytest_upskill.cases.skill import Case, Skill
from pytest_upskill.project.messages import counted
from pytest_upskill.stats import CaseCounts, lift, runs_needed
from pytest_upskill.teacher.engine import Engine, Part
from pytest_upskill.teacher.holdout import (
    Acceptance,
    decide_acceptance,
    question_digest,
    text_digest,
)
from pytest_upskill.teacher.looks import STRIDE, Comparison, Ledger, Look
from pytest_upskill.teacher.outcome import CommandOutcome, comparison_lines, figures_of, p_text
from pytest_upskill.teacher.versions import estimate_tokens
from pytest_upskill.trials.digests import case_digest
from pytest_upskill.trials.result import TrialResult
from pytest_upskill.trials.trial import Arm, Trial, block_of

RUNS = 10
"""Runs of each held-out case with each version."""

QUERY_RUNS = 3
"""The same for the queries by which a description is judged."""

TOKENS_PER_POINT = 100
"""Tokens by which a version may be longer for each percentage point that it gains."""

_FEASIBLE_RUNS = 50
"""Beyond this, more cases are the better advice."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contest:
    """Two versions of a skill, and the held-out cases that decide between them."""

    new: Skill
    old: Skill | None
    """None for no skill."""
    cases: Sequence[Case]
    runs: int = RUNS
    description: bool = False
    """Whether the descriptions compete, by which skill an agent chooses."""
    task: str = ""
    """The task for which the cases were made; "" if the skill had them."""

    @property
    def growth(self) -> int:
        """Tokens by which the new version is longer than the old one."""
        if self.old is None or self.description:
            return 0
        return estimate_tokens(self.new.text) - estimate_tokens(self.old.text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Confirmation:
    """The result of a look."""

    look: int
    acceptance: Acceptance
    counts: Mapping[str, Sequence[CaseCounts]]
    """Counts per case by the label of the student; *with* is the new version."""
    results: tuple[TrialResult, ...]
    """Results of both versions, case by case."""
    growth: int
    """Tokens by which the new version is longer."""

    @property
    def evidence(self) -> str:
        """The figures of the decision, in words."""
        acceptance = self.acceptance
        text = f"{p_text(acceptance.p)}, level {acceptance.alpha:.2g} at look {self.look}"
        if self.growth:
            text += f"; {self.growth:+,} tokens for {100 * self.best_lift:+.0f} points"
        if not self.cut_failures:
            return text
        cut = counted(self.cut_failures, "answer")
        return f"{text}; {cut} cut at the output limit: raise --upskill-max-tokens"

    @property
    def best_lift(self) -> float:
        """The largest lift of a student."""
        return max(lift(cases) or 0.0 for cases in self.counts.values())

    @property
    def is_too_long(self) -> bool:
        """Whether the new version grows by more than it gains."""
        return self.growth > TOKENS_PER_POINT * max(0.0, 100 * self.best_lift)

    @property
    def accepted(self) -> bool:
        """Whether the new version is better, and worth its length."""
        return self.acceptance.accepted and not self.is_too_long

    @property
    def cut_failures(self) -> int:
        """Number of runs that failed with an answer cut at the output limit."""
        return sum(trial.cut_failures for trial in self.results)

    @property
    def reason(self) -> str:
        """Why the new version is accepted or not, in one sentence."""
        acceptance, figures = self.acceptance, self.evidence
        if self.accepted:
            return f"better on held-out cases: {figures}"
        if acceptance.worse:
            return f"worse for {', '.join(acceptance.worse)}: {figures}"
        if acceptance.accepted:
            return f"better, but too long for it, as {TOKENS_PER_POINT} a point may be: {figures}"
        if any(
            all(case.passes_without == case.runs_without for case in cases)
            for cases in self.counts.values()
        ):
            return f"not shown to be better, as every held-out case passed before: {figures}"
        return f"not shown to be better: {figures}{self._advice()}"

    def _advice(self) -> str:
        """Return what would probably show the observed gain, "" if there is none."""
        if self.cut_failures or self.best_lift <= 0:
            return ""
        level = 2 * self.acceptance.alpha
        found = (runs_needed(cases, level) for cases in self.counts.values() if lift(cases))
        needed = min(filter(None, found), default=None)
        if needed is None or needed > _FEASIBLE_RUNS:
            return "; more cases could show a gain of this size"
        return f"; about {needed} runs per case would show a gain of this size: add --runs {needed}"

    def add_to(self, outcome: CommandOutcome) -> CommandOutcome:
        """Return a command's outcome with the decision and figures of this look."""
        return replace(
            outcome,
            decision="accepted" if self.accepted else "not shown",
            reason=self.reason,
            look=self.look,
            p=self.acceptance.p,
            alpha=self.acceptance.alpha,
            growth=self.growth,
            figures={student: figures_of(cases) for student, cases in self.counts.items()},
        )


def upcoming_look(engine: Engine, contest: Contest) -> Look:
    """Return the look that a contest gets if it is a new one."""
    date = datetime.now(UTC).isoformat(timespec="seconds")
    return _ledger(engine).next_look(contest.new.name, _comparison(engine, contest), date)


def confirm(engine: Engine, contest: Contest) -> Confirmation:
    """Measure both versions on the hold-out once, and decide; print the figures.

    The ledger gets the look before its first request: an interrupted look is continued as long as
    its answers are there, and no other comparison ever gets its answers.

    Raises:
        Stopped: An answer is missing, or a limit would be passed.
        OSError: The ledger cannot be written.
    """
    ledger, look, trials = _ledger(engine), *_look_of(engine, contest)
    written = look
    try:
        results = engine.results(trials, f"look {look.look}")
    finally:
        written = replace(look, answers=engine.estimate(trials).recorded)
        ledger.write(written)
    counts = _counts_by_student(results)
    acceptance = decide_acceptance(counts, look=look.look)
    if acceptance.accepted:
        # It must stand as well if the old version's cut answers would have passed.
        against = _counts_by_student(results, old_cut_pass=True)
        acceptance = replace(decide_acceptance(against, look=look.look), worse=())
    confirmed = Confirmation(
        look=look.look,
        acceptance=acceptance,
        counts=counts,
        results=tuple(results),
        growth=contest.growth,
    )
    ledger.write(
        replace(
            written,
            decision="accepted" if confirmed.accepted else "not shown",
            p=acceptance.p,
            alpha=acceptance.alpha,
        )
    )
    names = ("old version", "new version") if contest.old else ("baseline", "with skill")
    engine.say(*comparison_lines(counts, *names, blocks=engine.can_show_blocks))
    return confirmed


def look_parts(engine: Engine, contest: Contest) -> list[Part]:
    """Return the most requests of `confirm`, and their purpose."""
    trials = _look_trials(engine, contest, upcoming_look(engine, contest).draw)
    return [Part("both versions on held-out cases", trials)]


def _look_of(engine: Engine, contest: Contest) -> tuple[Look, list[Trial]]:
    """Return the look of a contest, and its trials.

    It is an earlier one of the same comparison if all answers of that one are still recorded.
    Other answers would be a second chance.
    """
    comparison, ledger = _comparison(engine, contest), _ledger(engine)
    for look in reversed(ledger.looks(comparison)):
        if look.comparison == comparison:
            trials = _look_trials(engine, contest, look.draw)
            if engine.estimate(trials).recorded >= max(1, look.answers):
                return look, trials
    look = upcoming_look(engine, contest)
    ledger.write(look)
    return look, _look_trials(engine, contest, look.draw)


def _comparison(engine: Engine, contest: Contest) -> Comparison:
    checks = sorted(f"{case_digest(case)} {case.trigger}" for case in contest.cases)
    return Comparison(
        old=_digest(contest.old, contest) if contest.old else "",
        new=_digest(contest.new, contest),
        students=tuple(sorted(student.resolved for student in engine.terms.students)),
        questions=tuple(sorted(map(question_digest, contest.cases))),
        checks=hashlib.sha256("\n".join(checks).encode()).hexdigest()[:16],
        runs=contest.runs,
        task=text_digest(contest.task) if contest.task else "",
    )


def _look_trials(engine: Engine, contest: Contest, draw: int) -> list[Trial]:
    """Return the trials of both versions, interleaved: each new one before its old one."""
    arms: tuple[Arm, Arm] = ("with_skill", "with_skill" if contest.old else "without_skill")
    if contest.description:
        arms = "trigger", "trigger"
    first, runs = draw * STRIDE, contest.runs
    both = (
        engine.trials(skill or contest.new, contest.cases, arm, runs=runs, first_run=first)
        for skill, arm in zip((contest.new, contest.old), arms, strict=True)
    )
    return [*chain.from_iterable(zip(*both, strict=True))]


def _counts_by_student(
    results: Sequence[TrialResult], *, old_cut_pass: bool = False
) -> dict[str, list[CaseCounts]]:
    """Return the counts per case from the interleaved results of both versions."""
    counts: dict[str, list[CaseCounts]] = {}
    for with_new, with_old in zip(results[::2], results[1::2], strict=True):
        cut = with_old.cut_failures if old_cut_pass else 0
        before = with_old.passes + cut, len(with_old.runs)
        pair = CaseCounts(with_new.passes, len(with_new.runs), *before)
        counts.setdefault(with_new.model, []).append(pair)
    return counts


def _ledger(engine: Engine) -> Ledger:
    return Ledger(engine.terms.state / "looks", engine.workplace.resources.cache)


def _digest(skill: Skill, contest: Contest) -> str:
    """Return the digest of what models see of a version."""
    seen = listed(skill).digest if contest.description else block_of(skill)
    return hashlib.sha256(seen.encode("utf-8", "replace")).hexdigest()
