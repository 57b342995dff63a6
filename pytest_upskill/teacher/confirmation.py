"""The confirmation: one look at the hold-out, with fresh and interleaved runs of two versions."""

import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from statistics import fmean

from pytest_upskill import CASE_FILE
from pytest_upskill.cases.catalogue import as_listed
from pytest_upskill.cases.skill import GateRule
from pytest_upskill.figures.cell import Cell
from pytest_upskill.figures.gate import Gate
from pytest_upskill.figures.lift import observed_lift
from pytest_upskill.figures.wording import bounds, p_text, percent, points
from pytest_upskill.project.digest import digest_of
from pytest_upskill.project.files import RUNS as HISTORY
from pytest_upskill.project.git import revision
from pytest_upskill.project.messages import counted
from pytest_upskill.report.document import Report, Session
from pytest_upskill.report.history.runs import log_run
from pytest_upskill.report.history.terminal import bar
from pytest_upskill.stats import CaseCounts, Interval, lift, runs_needed, verdict
from pytest_upskill.teacher import acceptance
from pytest_upskill.teacher.acceptance import KeptLook, Ledger, LookDecision, VersionComparison
from pytest_upskill.teacher.engine import Engine
from pytest_upskill.teacher.outcome import Work
from pytest_upskill.teacher.versions import Task, estimate_tokens
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


def _decide(work: Work, results: Sequence[TrialResult], look: KeptLook) -> KeptLook:
    """Decide about a new version, note what was decided and why, and return the decided look.

    Args:
        work: The command; its growth is noted already.
        results: Results of both versions, case by case.
        look: The look.
    """
    counts, growth = _counts_by_student(results), work.outcome.growth
    decided = acceptance.decide_acceptance(counts, look=look.look)
    if is_better := decided.accepted:
        # It must stand as well if the old version's cut answers would have passed.
        against = _counts_by_student(results, old_cut_pass=True)
        decided = replace(acceptance.decide_acceptance(against, look=look.look), worse=())
    gain = 100 * max(lift(cases) or 0.0 for cases in counts.values())
    evidence = f"{p_text(decided.p)}, level {decided.alpha:.2g} at look {look.look}"
    if growth:
        evidence += f"; {growth:+,} tokens for {gain:+.0f} points"
    if cut := sum(trial.cut_failures for trial in results):
        cut_answers = counted(cut, "answer")
        evidence += f"; {cut_answers} cut at the output limit: --param max_tokens=N raises it"
    decision: LookDecision = "not shown"
    if decided.worse:
        finding = f"worse for {', '.join(decided.worse)}"
    elif is_better and not decided.accepted:
        finding = "better only if no cut answer of the old version would have passed"
    elif not decided.accepted:
        finding = "no better beyond chance on held-out cases"
        evidence += _advice(counts, decided.alpha) if gain > 0 and not cut else ""
    elif growth > TOKENS_PER_POINT * max(0.0, gain):
        finding = f"better, but too long for it, as {TOKENS_PER_POINT} a point may be"
    else:
        finding, decision = "better on held-out cases", "accepted"
    work.note(
        decision=decision,
        reason=f"{finding}: {evidence}",
        look=look.look,
        p=decided.p,
        alpha=decided.alpha,
        figures={student: _figures(cases) for student, cases in counts.items()},
    )
    return replace(look, decision=decision, p=decided.p, alpha=decided.alpha)


def _advice(counts: Mapping[str, Sequence[CaseCounts]], alpha: float) -> str:
    """Return what would probably show the observed gain."""
    found = (runs_needed(cases, 2 * alpha) for cases in counts.values() if lift(cases))
    needed = min(filter(None, found), default=None)
    if needed is None or needed > _FEASIBLE_RUNS:
        return "; more cases could show a gain of this size"
    return f"; about {needed} runs per case would show a gain of this size: add --runs {needed}"


def _figures(cases: Sequence[CaseCounts]) -> dict[str, float]:
    """Return mean pass rates before and after, the lift and its interval, as JSON."""
    observed = observed_lift(cases)
    # There are cases, and a missing run would have stopped the command.
    assert observed is not None
    before = fmean(case.passes_without / case.runs_without for case in cases)
    after = fmean(case.passes_with / case.runs_with for case in cases)
    shown = {"before": before, "after": after, "lift": observed.estimate}
    return {**shown, "low": observed.low, "high": observed.high}


def _comparison_lines(
    work: Work, counts: Mapping[str, Sequence[CaseCounts]], before: str, after: str
) -> Iterator[str]:
    """Yield ``baseline ████░░ 60%``, ``with skill ███████ 95% (+35%)`` and the lift by student.

    Args:
        work: The command, which has noted the figures.
        counts: Counts of the held-out cases by student.
        before: Name of the *without* side.
        after: Name of the *with* side.
    """
    width = max(len(before), len(after))
    for student, cases in counts.items():
        figures = work.outcome.figures[student]
        gain, interval = points(figures["lift"]), Interval(figures["low"], figures["high"])
        yield f"{student}, held-out cases, fresh runs:"
        for name, key, change in ((before, "before", ""), (after, "after", f" ({gain}%)")):
            rate = figures[key]
            shown = bar(rate, 1.0, work.engine.shows_blocks)
            yield f"  {name:{width}}  {shown} {percent(rate):>3}%{change}"
        yield f"  lift {gain} points {bounds(interval)}: {verdict(cases)}"


def look_of(engine: Engine, task: Task, text: str) -> KeptLook:
    """Return the look of a version: an earlier one if all its answers are still recorded.

    Other answers to the same comparison would be a second chance.
    """
    comparison, ledger = _comparison(engine, task, text), _ledger(engine)
    for look in reversed(ledger.looks(comparison)):
        if look.comparison == comparison:
            trials = look_trials(engine, task, text, look.draw)
            if engine.estimate(trials).recorded >= max(1, look.answers):
                return look
    date = datetime.now(UTC).isoformat(timespec="seconds")
    return ledger.next_look(task.skill.name, comparison, date)


def confirm(work: Work, task: Task, text: str) -> Sequence[TrialResult]:
    """Measure both versions on the hold-out once; note and print what that decides.

    The ledger gets the look before its first request: an interrupted look is continued as long as
    its answers are there, and no other comparison ever gets its answers.

    Args:
        work: The command.
        task: The old version, unless the skill is new, and the held-out cases.
        text: The new version.

    Returns:
        The results of both versions, case by case.

    Raises:
        Stopped: An answer is missing, or a limit would be passed.
        OSError: The ledger cannot be written.
    """
    engine = work.engine
    ledger, look = _ledger(engine), look_of(engine, task, text)
    trials = look_trials(engine, task, text, look.draw)
    ledger.write(look)
    try:
        results = engine.results(trials, f"look {look.look}")
    finally:
        look = replace(look, answers=engine.estimate(trials).recorded)
        ledger.write(look)
    if not task.is_new and not task.settings.description:
        new, old = (estimate_tokens(task.version(each).text) for each in (text, task.skill.text))
        work.note(growth=new - old)
    ledger.write(_decide(work, results, look))
    names = ("baseline", "with skill") if task.is_new else ("old version", "new version")
    engine.say(*_comparison_lines(work, _counts_by_student(results), *names))
    return results


def _comparison(engine: Engine, task: Task, text: str) -> VersionComparison:
    checks = sorted(f"{case_digest(case)} {case.trigger}" for case in task.holdout)
    return VersionComparison(
        old="" if task.is_new else _digest(task, task.skill.text),
        new=_digest(task, text),
        students=tuple(sorted(student.resolved for student in engine.students)),
        questions=tuple(sorted(map(acceptance.question_digest, task.holdout))),
        checks=digest_of("\n".join(checks)),
        runs=task.settings.runs,
        task=acceptance.text_digest(what) if task.proposes and (what := task.settings.task) else "",
    )


def look_trials(engine: Engine, task: Task, text: str, draw: int) -> list[Trial]:
    """Return the trials of both versions, interleaved: each new one before its old one."""
    settings, old = task.settings, text if task.is_new else task.skill.text
    arms: tuple[Arm, Arm] = ("with_skill", "without_skill" if task.is_new else "with_skill")
    if settings.description:
        arms = "trigger", "trigger"
    runs, first = settings.runs, draw * acceptance.STRIDE
    both = (
        engine.trials(task.version(version), task.holdout, arm, runs=runs, first_run=first)
        for version, arm in zip((text, old), arms, strict=True)
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
    return Ledger(engine.state / "looks", engine.workplace.resources.cache)


def _digest(task: Task, text: str) -> str:
    """Return the digest of what models see of a version."""
    skill = task.version(text)
    seen = as_listed(skill).digest if task.settings.description else block_of(skill)
    return hashlib.sha256(seen.encode("utf-8", "replace")).hexdigest()


def log_confirmation(work: Work, results: Sequence[TrialResult], folder: Path) -> None:
    """Write the confirmation of a skill into the history; say so if that is impossible.

    Args:
        work: The command.
        results: Results of both versions on held-out cases, case by case.
        folder: The folder of the skill.
    """
    engine = work.engine
    project = engine.state.parent
    path = Path(os.path.relpath(folder / CASE_FILE, project)).as_posix()
    before: dict[Arm, Arm] = {"with_skill": "old_skill", "trigger": "old_trigger"}
    old = (replace(each, arm=before.get(each.arm, each.arm)) for each in results[1::2])
    both = (*results[::2], *old)
    gates = []
    for student in engine.students:
        trials = tuple(each for each in both if each.model == student.label)
        cell = Cell(
            path=path,
            skill=trials[0].skill,
            model=student.label,
            resolved=student.resolved,
            gate=GateRule(),
            planned=len(trials),
            trials=trials,
        )
        gates.append(Gate(cell=cell, outcome="passed", text=cell.name))
    session = Session(
        date=datetime.now(UTC).replace(microsecond=0),
        versions={},
        models={student.label: student.resolved for student in engine.students},
        options={"command": work.outcome.command, "look": work.outcome.look},
        complete=True,
        revision=revision(project, [folder]),
    )
    try:
        log_run(Report(sessions=(session,), gates=tuple(gates)), engine.state / HISTORY)
    except OSError as error:
        engine.say(f"not in the history: {engine.state / HISTORY}: {error.strerror}")
