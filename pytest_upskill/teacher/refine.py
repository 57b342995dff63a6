"""``refine``: a better version of a skill, chosen on train cases and proved on the hold-out."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import dataclass, replace

from pytest_upskill.formats.skill import Skill
from pytest_upskill.teacher.proof.acceptance import alpha_of_look, power
from pytest_upskill.teacher.proof.confirmation import (
    Confirmation,
    Contest,
    confirm,
    look_ahead,
    trials_of_look,
)
from pytest_upskill.teacher.proof.eligible import eligible
from pytest_upskill.teacher.proof.holdout import MIN_HELD_OUT, missing_cases, split
from pytest_upskill.teacher.proof.ledger import Ledger
from pytest_upskill.teacher.versions.edits import byte_limit
from pytest_upskill.teacher.versions.literals import marked_diff
from pytest_upskill.teacher.versions.search import Found, Task, search, train_trials, version
from pytest_upskill.teacher.versions.train_marks import with_train_marks
from pytest_upskill.teacher.work.conclusion import DRY_RUN, conclude
from pytest_upskill.teacher.work.consent import Change, check_clean, replace_files
from pytest_upskill.teacher.work.decision import Decision, Drafts, Outcome
from pytest_upskill.teacher.work.encoding import encoded_like
from pytest_upskill.teacher.work.engine import Engine
from pytest_upskill.teacher.work.measure import teacher_trial
from pytest_upskill.teacher.work.picture import figures_of
from pytest_upskill.teacher.work.place import place
from pytest_upskill.teacher.work.plan import Part, check_models, padded, plan_lines
from pytest_upskill.teacher.work.reply import MAX_TOKENS
from pytest_upskill.teacher.work.terms import Terms
from pytest_upskill.trials.trial import runs_of

_PROMPT_BYTES = 24_000
"""More than a question to the teacher has besides the skill."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """The order of a ``refine`` command."""

    skill: Skill
    steps: int
    runs: int
    """Runs of each held-out case with each version."""
    terms: Terms


def refine(engine: Engine, order: Order) -> Decision:
    """Search for a better version, prove it, and offer it; write ``decision.json``.

    Raises:
        TeacherError: The command cannot run as it was given.
    """
    file = order.skill.folder / "SKILL.md"
    content = file.read_bytes()
    text = content.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    given = (text, *order.terms.names, str(order.steps), str(order.runs))
    drafts = Drafts(order.terms.state / "drafts", order.skill.name, "refine", str(file), *given)
    cases, left_out = eligible(engine, order.skill.cases, order.terms.students)
    train, holdout = split(cases)
    task = Task(
        skill=order.skill,
        text=text,
        train=tuple(train),
        holdout=tuple(holdout),
        teacher=order.terms.teacher,
        students=order.terms.students,
        steps=order.steps,
    )
    decision = replace(
        order.terms.interrupted("refine", order.skill.name),
        train=tuple(case.id for case in train),
        holdout=tuple(case.id for case in holdout),
        kept=tuple(case.id for case in cases),
        dropped=left_out,
    )
    work = _Refinement(engine, order, task, drafts, content)
    return conclude(engine, drafts, decision, work.decided, dry_run=order.terms.dry_run)


class _Refinement:
    """One run of ``refine``."""

    def __init__(
        self, engine: Engine, order: Order, task: Task, drafts: Drafts, content: bytes
    ) -> None:
        self._engine = engine
        self._order = order
        self._task = task
        self._drafts = drafts
        self._content = content
        self._ledger = Ledger(order.terms.state / "looks")

    def decided(self, decision: Decision) -> Decision:
        """Return the decision after everything was run."""
        order, task = self._order, self._task
        for case, reason in decision.dropped.items():
            self._engine.say(f"left out: {case}: {reason}")
        lacking = len(task.holdout) < MIN_HELD_OUT
        if lacking or not task.train:
            return self._refused(decision, _too_few(len(task.train), len(task.holdout)))
        if order.terms.consent.apply:
            check_clean(order.skill.folder / "SKILL.md")
        check_models(self._engine, order.terms.teacher, order.terms.students, order.terms.limits)
        for line in self._plan():
            self._engine.say(line)
        if order.terms.dry_run:
            return replace(decision, decision="stopped", reason=DRY_RUN)
        found = search(self._engine, task, self._drafts.write)
        decision = replace(decision, candidates=found.log)
        if not found.current.failures:
            return self._refused(
                decision, "the skill passes every train case: nothing to learn from"
            )
        if found.best is found.current:
            reason = "no candidate passed more train cases, so the hold-out was not used"
            self._engine.say(reason)
            return replace(decision, decision="not shown", reason=reason)
        return self._confirmed(decision, found)

    def _refused(self, decision: Decision, reason: str) -> Decision:
        self._engine.say(reason)
        return replace(decision, decision="refused", reason=reason)

    def _contest(self, text: str) -> Contest:
        order, task = self._order, self._task
        return Contest(
            new=version(task.skill, text),
            old=version(task.skill, task.text),
            cases=task.holdout,
            students=order.terms.students,
            runs=order.runs,
        )

    def _plan(self) -> Iterator[str]:
        """Yield what will be asked, and what the confirmation can show."""
        order, task, engine = self._order, self._task, self._engine
        limit = byte_limit(task.text)
        look = look_ahead(engine, self._ledger, self._contest(f"{task.text}\n"))
        new, old = trials_of_look(engine, self._contest(task.text), look)
        train = tuple(train_trials(engine, task, task.text))
        asked = teacher_trial(
            task.skill,
            order.terms.teacher,
            what="edit",
            prompt=" " * (limit + _PROMPT_BYTES),
            max_tokens=MAX_TOKENS,
        )
        held = len(task.holdout)
        yield f"{order.skill.name}: {len(task.train)} train cases, {held} held out"
        yield from plan_lines(
            engine,
            [
                Part(
                    what=f"edits of {order.terms.teacher.label}", trials=(asked,), times=order.steps
                ),
                Part(what="the skill as it is, on train cases", trials=train),
                Part(
                    what="candidates on train cases",
                    trials=tuple(padded(trial, limit) for trial in train),
                    times=order.steps,
                ),
                Part(
                    what="both versions on the hold-out",
                    trials=(*(padded(trial, limit) for trial in new), *old),
                ),
            ],
        )
        yield from self._power(look, held)

    def _power(self, look: int, held: int) -> Iterator[str]:
        order, students = self._order, self._order.terms.students
        runs = min(runs_of(student, order.runs) for student in students)
        found = ", ".join(
            f"{100 * gain:+.0f}: "
            f"{power(gain, cases=held, runs=runs, look=look, students=len(students)):.0%}"
            for gain in (0.1, 0.2, 0.3)
        )
        yield (
            f"look {look} at this hold-out, level {alpha_of_look(look):.2g}: "
            f"the chance to detect a true gain in points: {found}"
        )

    def _confirmed(self, decision: Decision, found: Found) -> Decision:
        """Measure the candidate on the hold-out, and offer it if it is better."""
        task, best = self._task, found.best
        self._drafts.write("SKILL.md", best.text)
        self._drafts.write("old-SKILL.md", task.text)
        diff = "\n".join(_diff(task.text, best.text, "SKILL.md"))
        self._drafts.write("candidate.diff", f"{diff}\n")
        confirmed = confirm(self._engine, self._ledger, self._contest(best.text))
        acceptance = confirmed.acceptance
        for line in figures_of(
            confirmed.counts, "old version", "new version", unicode=self._engine.unicode
        ):
            self._engine.say(line)
        reason = explain(confirmed)
        self._engine.say(reason)
        outcome: Outcome = "accepted" if acceptance.accepted else "not shown"
        decision = replace(
            decision,
            decision=outcome,
            reason=reason,
            look=confirmed.look,
            p=acceptance.p,
            alpha=acceptance.alpha,
            figures=confirmed.figures,
        )
        if not acceptance.accepted:
            return decision
        cases = (*task.train, *task.holdout)
        for line in marked_diff(task.text, best.text, cases, name="SKILL.md"):
            self._engine.say(line)
        return replace(decision, applied=self._apply(best.text))

    def _apply(self, text: str) -> bool:
        """Change the folder if somebody has agreed; return whether it was changed."""
        order, say = self._order, self._engine.say
        file, case_file = order.skill.folder / "SKILL.md", order.skill.case_file
        old_cases = case_file.read_bytes()
        new_cases = with_train_marks(case_file, old_cases, [case.id for case in self._task.train])
        if new_cases != old_cases:
            count = len(self._task.train)
            say(f'{case_file.name}: {count} train cases get "train": true and leave the lift')
        changed = [file, case_file] if new_cases != old_cases else [file]
        if not order.terms.consent.to_write(f"Write this to {place(file)}?", changed, say):
            return False
        # The marks first: without them a command that is killed here would leave too high a lift.
        marks = [Change(file=case_file, old=old_cases, new=new_cases)]
        replace_files(
            [
                *(marks if new_cases != old_cases else ()),
                Change(file=file, old=self._content, new=encoded_like(self._content, text)),
            ]
        )
        say(f"written: {place(file)}")
        return True


def explain(confirmed: Confirmation) -> str:
    """Return the decision about a version in one sentence."""
    acceptance = confirmed.acceptance
    figures = f"p = {acceptance.p:.2g}, level {acceptance.alpha:.2g} at look {confirmed.look}"
    if acceptance.accepted:
        return f"better on held-out cases: {figures}"
    if acceptance.worse:
        return f"worse for {', '.join(acceptance.worse)}: {figures}"
    if any(_full(confirmed, student) for student in confirmed.counts):
        return f"not shown to be better, as the old version passes every held-out case: {figures}"
    needed = confirmed.runs_needed
    more = f"; about {needed} runs per case would show a gain of this size" if needed else ""
    return f"not shown to be better: {figures}{more}"


def _full(confirmed: Confirmation, student: str) -> bool:
    return all(case.passes_without == case.runs_without for case in confirmed.counts[student])


def _diff(old: str, new: str, name: str) -> Iterator[str]:
    return difflib.unified_diff(
        old.splitlines(), new.splitlines(), f"a/{name}", f"b/{name}", lineterm=""
    )


def _too_few(train: int, held_out: int) -> str:
    if not train:
        return "no train case: add cases, or let 'pytest-upskill cases' propose some"
    return (
        f"only {held_out} of {train + held_out} cases are held out, and a decision needs "
        f"{MIN_HELD_OUT}: add about {missing_cases(held_out)} more, or let 'pytest-upskill cases' "
        f"propose some"
    )
