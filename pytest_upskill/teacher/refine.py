"""``refine``: a better version of a skill, chosen on train cases and proved on the hold-out.

1. The hash of its id decides whether a case is a train case or held out (`holdout`).
2. A teacher proposes edits; the version that passes most train cases is chosen (`search`).
3. It is compared with the old version once, by fresh runs on the held-out cases. A ledger counts
   these looks (`ledger`): each one is stricter than the one before.
4. It is accepted if it is better for a student and worse for none (`holdout`).
5. It is written if the user agrees.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from pytest_upskill import CASE_FILE
from pytest_upskill.cases.skill import Case, Skill
from pytest_upskill.project.files import MAX_TEXT_BYTES, read_file
from pytest_upskill.teacher.additions import listed_code, marked_diff
from pytest_upskill.teacher.confirmation import (
    Contest,
    confirm,
    look_trials,
    upcoming_look_number,
)
from pytest_upskill.teacher.engine import Engine, Part, check_models, pad_skill_block, plan_lines
from pytest_upskill.teacher.files import Change, Drafts, check_clean, encoded_like, with_train_marks
from pytest_upskill.teacher.holdout import (
    MIN_HELD_OUT,
    alpha_of_look,
    eligible_cases,
    missing_cases,
    power,
    split_cases,
)
from pytest_upskill.teacher.outcome import CommandOutcome, record, run_and_record
from pytest_upskill.teacher.search import (
    Task,
    longest_question,
    search,
    skill_version,
    train_trials,
)
from pytest_upskill.teacher.versions import byte_limit
from pytest_upskill.trials.trial import runs_of


def refine(engine: Engine, skill: Skill, *, steps: int, runs: int) -> CommandOutcome:
    """Search for a better version, prove it, and offer it; write ``decision.json``.

    Args:
        engine: Runs the trials.
        skill: The skill with its cases.
        steps: Versions to try.
        runs: Runs of each held-out case with each version.

    Raises:
        WorkError: The command cannot run as it was given.
    """
    file = skill.folder / "SKILL.md"
    content = read_file(file, MAX_TEXT_BYTES)
    text = content.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    given = (text, *engine.terms.names, str(steps), str(runs))
    drafts = engine.terms.drafts(skill.name, "refine", str(file), *given)
    cases, left_out = eligible_cases(engine, skill.cases)
    train, holdout = split_cases(cases)
    start = CommandOutcome(command="refine", skill=skill.name).with_cases(cases, left_out)
    engine.say(*(f"left out: {case}: {reason}" for case, reason in left_out.items()))
    if reason := _too_few_reason(train, holdout):
        engine.say(reason)
        return record(engine, drafts, replace(start, decision="refused", reason=reason))
    if engine.terms.consent.apply:
        check_clean(file)
    check_models(engine)
    task = Task(skill=skill, text=text, train=train, holdout=holdout, steps=steps)
    refinement = _Refinement(engine, task, runs, drafts, content)
    return run_and_record(engine, drafts, start, refinement.plan(), refinement.run)


@dataclass(frozen=True, slots=True)
class _Refinement:
    """One run of ``refine``."""

    engine: Engine
    task: Task
    runs: int
    drafts: Drafts
    content: bytes
    """The bytes of the ``SKILL.md`` as it is."""

    def run(self, outcome: CommandOutcome) -> CommandOutcome:
        """Choose a version on the train cases, prove it on the hold-out, and offer it."""
        result = search(self.engine, self.task, self.drafts)
        outcome = replace(outcome, candidates=result.log)
        if not result.current.failures:
            reason = "the skill passes every train case: nothing to learn from"
            self.engine.say(reason)
            return replace(outcome, decision="refused", reason=reason)
        if result.best is result.current:
            reason = "no candidate passed more train cases, so the hold-out was not used"
            self.engine.say(reason)
            return replace(outcome, decision="not shown", reason=reason)
        new = result.best.text
        self.drafts.write("SKILL.md", new)
        confirmed = confirm(self.engine, self._contest(new))
        outcome = confirmed.add_to(outcome)
        self.engine.say(outcome.reason)
        if outcome.decision != "accepted":
            return outcome
        return replace(outcome, applied=self._offer(new))

    def plan(self) -> Iterator[str]:
        """Yield the most answers that can be requested, and the gains that a look would detect."""
        task, engine = self.task, self.engine
        limit, teacher = byte_limit(task.text), engine.terms.teacher.label
        look = upcoming_look_number(engine, task.holdout)
        # There is no candidate yet: the text as it is, padded, stands for the longest one.
        new, old = look_trials(engine, self._contest(task.text), look)
        train = train_trials(engine, task, task.text)
        longest_train = [pad_skill_block(trial, limit) for trial in train]
        longest_new = [pad_skill_block(trial, limit) for trial in new]
        yield f"{task.skill.name}: {len(task.train)} train cases, {len(task.holdout)} held out"
        yield from plan_lines(
            engine,
            Part(f"edits of {teacher}", [longest_question(engine, task)], task.steps),
            Part("the skill as it is, on train cases", train),
            Part("candidates on train cases", longest_train, task.steps),
            Part("both versions on the hold-out", [*longest_new, *old]),
        )
        yield self._power_line(look)

    def _power_line(self, look: int) -> str:
        """Return the chance to detect a gain, in words."""
        students, cases = self.engine.terms.students, len(self.task.holdout)
        runs = min(runs_of(student, self.runs) for student in students)
        chances = ", ".join(
            f"{100 * gain:+.0f}: "
            f"{power(gain, cases=cases, runs=runs, look=look, students=len(students)):.0%}"
            for gain in (0.1, 0.2, 0.3)
        )
        return (
            f"look {look} at this hold-out, level {alpha_of_look(look):.2g}: "
            f"the chance to detect a true gain in points: {chances}"
        )

    def _contest(self, text: str) -> Contest:
        task = self.task
        new, old = skill_version(task.skill, text), skill_version(task.skill, task.text)
        return Contest(new=new, old=old, cases=task.holdout, runs=self.runs)

    def _offer(self, text: str) -> bool:
        """Show the change, and return whether the user agreed and it was written."""
        task, say = self.task, self.engine.say
        say(*marked_diff(task.text, text, (*task.train, *task.holdout), name="SKILL.md"))
        say(*listed_code(text, task.text))
        # The marks are written first, so that an interrupted command cannot leave too high a lift.
        changes = [*_train_mark_changes(task)]
        if changes:
            count = len(task.train)
            say(f'{CASE_FILE}: {count} train cases get "train": true and leave the lift')
        new = encoded_like(self.content, text)
        changes.append(Change(file=task.skill.folder / "SKILL.md", old=self.content, new=new))
        return self.engine.terms.consent.apply_changes("Write this to", changes, say)


def _train_mark_changes(task: Task) -> Iterator[Change]:
    """Yield the change that marks the train cases in a ``skill_meta.json``, if any is unmarked."""
    file = task.skill.case_file
    if file.name == CASE_FILE:
        old = read_file(file, MAX_TEXT_BYTES)
        new = with_train_marks(old, [case.id for case in task.train])
        if new != old:
            yield Change(file=file, old=old, new=new)


def _too_few_reason(train: Sequence[Case], holdout: Sequence[Case]) -> str:
    """Return why the cases are too few to decide, "" if they are enough."""
    if len(holdout) < MIN_HELD_OUT and train:
        return (
            f"only {len(holdout)} of {len(train) + len(holdout)} cases are held out, and a "
            f"decision needs {MIN_HELD_OUT}: add about {missing_cases(len(holdout))} more, or let "
            "'pytest-upskill cases' propose some"
        )
    return "" if train else "no train case: add cases, or let 'pytest-upskill cases' propose some"
