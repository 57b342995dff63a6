"""``generate`` and ``refine``: a version of a skill, chosen on train cases, proved on others.

1. Without a skill, the teacher writes a draft (`draft`). Without enough cases, it proposes some
   (`cases`).
2. The text of its question decides whether a case is a train case or held out (`holdout`).
3. The teacher proposes versions; the one that passes most train cases is chosen (`search`).
4. It is compared once with the old version, or with no skill, by fresh runs on the held-out cases
   (`confirmation`). A ledger counts these looks (`looks`): each one is stricter.
5. A new skill is saved; a version of an existing one is written if the user agrees (`files`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from pytest_upskill import CASE_FILE
from pytest_upskill.cases.skill import Case, Skill
from pytest_upskill.project.files import MAX_TEXT_BYTES, read_file
from pytest_upskill.teacher.additions import listed_code, marked_diff
from pytest_upskill.teacher.cases import Demand, Kept, demand_for, keep_cases, plan_parts
from pytest_upskill.teacher.confirmation import (
    Confirmation,
    Contest,
    confirm,
    look_parts,
    upcoming_look,
)
from pytest_upskill.teacher.draft import NewSkill, draft_parts, request_draft
from pytest_upskill.teacher.engine import Engine, Part, check_models, plan_lines
from pytest_upskill.teacher.files import (
    Change,
    Drafts,
    check_clean,
    encoded_like,
    read_content,
    save_copy,
    with_cases,
    with_train_marks,
)
from pytest_upskill.teacher.holdout import (
    MIN_HELD_OUT,
    SPREADS,
    alpha_of_look,
    eligible_cases,
    missing_cases,
    power,
    split_cases,
)
from pytest_upskill.teacher.log import log_confirmation
from pytest_upskill.teacher.outcome import (
    NO_EVAL,
    CommandOutcome,
    Review,
    record,
    run_and_record,
)
from pytest_upskill.teacher.proposals import BATCH
from pytest_upskill.teacher.search import SearchResult, Task, search, search_parts
from pytest_upskill.teacher.sources import Source, source_of
from pytest_upskill.teacher.terms import Say
from pytest_upskill.teacher.versions import Wishes
from pytest_upskill.trials.trial import runs_of

_LONGEST_CASE = Case(id="case", input="x" * 1000, checks=())


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of ``generate`` and ``refine``."""

    wishes: Wishes = field(default_factory=Wishes)
    count: int = 0
    """Cases to propose if there are too few; 0 to propose none."""
    queries: int = 0
    """Queries to propose with a new skill."""
    steps: int
    """Versions to try."""
    runs: int
    """Runs of each held-out case with each version."""
    output: Path | None = None
    """The folder for the result; None for ``skills/NAME``, or for the skill's own."""
    description: bool = False
    """Whether only the description is to be improved."""


def generate(engine: Engine, settings: Settings) -> CommandOutcome:
    """Write a skill and its cases, measure it, and save it if it helps; write ``decision.json``.

    Raises:
        WorkError: The command cannot run as it was given.
    """
    terms, wishes = engine.terms, settings.wishes
    given = (wishes.task, *terms.names, *(source.text for source in wishes.sources))
    new = NewSkill(wishes, settings.output)
    drafts = terms.drafts(new.name, "generate", *given)
    new.check_output(drafts)
    check_models(engine)
    terms.check_sources(wishes.sources, drafts, engine.say)
    parts = [*draft_parts(engine, new)]
    improvement = _Improvement(engine=engine, settings=settings, drafts=drafts)
    if terms.students:
        task, demand = improvement.start(new.longest(), new.longest().text)
        parts += improvement.parts(task, demand)

    def run(outcome: CommandOutcome) -> CommandOutcome:
        draft = request_draft(engine, new, drafts)
        skill, folder = draft.skill, new.folder(draft.skill.name, drafts)
        outcome = replace(outcome, skill=skill.name)
        if not terms.students:  # --no-eval
            engine.say(*listed_code(draft.text))
            save_copy(skill.folder, folder, [], engine.say, drafts)
            return replace(outcome, decision="not shown", reason=NO_EVAL, applied=True)
        task, demand = improvement.start(skill, draft.text, sources=draft.sources)
        task, kept, outcome = improvement.prove(task, demand, outcome)
        if outcome.decision == "accepted":
            engine.say(*listed_code(task.text))
            content = with_train_marks(with_cases(None, kept.entries), outcome.train)
            changes = [
                Change(file=skill.folder / CASE_FILE, old=None, new=content),
                Change(file=skill.folder / "SKILL.md", old=None, new=task.text.encode()),
            ]
            if save_copy(skill.folder, folder, changes, engine.say, drafts):
                improvement.log(folder, "generate")
            outcome = replace(outcome, applied=True)
        return outcome

    start = CommandOutcome(command="generate", skill=new.name)
    improvement.review.plan = [*plan_lines(engine, *parts)]
    return run_and_record(engine, drafts, start, improvement.review, run)


def refine(engine: Engine, skill: Skill, settings: Settings) -> CommandOutcome:
    """Search for a better version, prove it, and offer it; write ``decision.json``.

    Raises:
        WorkError: The command cannot run as it was given.
    """
    terms, wishes, file = engine.terms, settings.wishes, skill.folder / "SKILL.md"
    content = read_file(file, MAX_TEXT_BYTES)
    text = content.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    options = (settings.steps, settings.runs, settings.description, wishes.task)
    sources = (source.text for source in wishes.sources)
    given = (text, *terms.names, *map(str, options), *sources)
    drafts = terms.drafts(skill.name, "refine", str(file), *given)
    comments = drafts.comments(skill.name)
    settings = replace(settings, wishes=replace(wishes, comments=comments))
    improvement = _Improvement(engine=engine, settings=settings, drafts=drafts, content=content)
    cases, left_out = eligible_cases(engine, skill.cases, description=settings.description)
    task, demand = improvement.start(replace(skill, cases=tuple(cases)), text)
    start = CommandOutcome(command="refine", skill=skill.name).with_cases(cases, left_out)
    engine.say(*(f"left out: {case}: {reason}" for case, reason in left_out.items()))
    reason = _too_few_reason(task.train, task.holdout)
    if reason and demand is None:
        engine.say(reason)
        return record(engine, drafts, replace(start, decision="refused", reason=reason))
    if terms.consent.apply and settings.output is None:
        check_clean(file)
    check_models(engine)
    terms.check_sources(wishes.sources, drafts, engine.say)

    def run(outcome: CommandOutcome) -> CommandOutcome:
        best, kept, outcome = improvement.prove(task, demand, outcome)
        if outcome.decision == "accepted" and improvement.offer(task.text, best, kept):
            improvement.log(settings.output or skill.folder, "refine")
            outcome = replace(outcome, applied=True)
        return outcome

    improvement.review.plan = [*improvement.plan(task, demand)]
    return run_and_record(engine, drafts, start, improvement.review, run)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Improvement:
    """What is common to a new skill and to a version of one that exists."""

    engine: Engine
    settings: Settings
    drafts: Drafts
    content: bytes | None = None
    """The bytes of the ``SKILL.md`` as it is; None for a new skill."""
    review: Review = field(default_factory=Review)
    confirmed: list[Confirmation] = field(default_factory=list)

    def start(
        self, skill: Skill, text: str, sources: Sequence[Source] = ()
    ) -> tuple[Task, Demand | None]:
        """Return what to improve, and which cases to propose first; None for none."""
        settings, wishes = self.settings, self.settings.wishes
        train, holdout = split_cases(skill.cases)
        task = Task(
            skill=skill,
            text=text,
            train=train,
            holdout=holdout,
            steps=settings.steps,
            runs=settings.runs,
            wishes=wishes,
            description=settings.description,
        )
        if not settings.count or not _too_few_reason(train, holdout):
            return task, None
        sources = sources or wishes.sources
        least = MIN_HELD_OUT - len(holdout)
        if self.content is not None:
            count = settings.count
            return task, demand_for(skill, sources, task=wishes.task, count=count, held_out=least)
        return task, Demand(
            skill=skill,
            task=wishes.task,
            sources=sources or [source_of("task", wishes.task)],
            count=settings.count,
            queries=settings.queries,
            held_out=least,
        )

    def plan(self, task: Task, demand: Demand | None) -> Iterator[str]:
        """Yield the most answers that can be requested, and the gains that a look would detect."""
        yield f"{task.skill.name}: {len(task.train)} train cases, {len(task.holdout)} held out"
        yield from plan_lines(self.engine, *self.parts(task, demand))
        if demand is None:
            yield from self._power_lines(task)

    def parts(self, task: Task, demand: Demand | None) -> list[Part]:
        """Return the most requests, and their purposes."""
        engine, proposals = self.engine, list[Part]()
        if demand is not None:
            proposals = [*plan_parts(engine, demand)]
            more = [
                replace(_LONGEST_CASE, id=f"case-{number}")
                for number in range(demand.rounds * BATCH)
            ]
            task = replace(task, train=[*task.train, *more], holdout=[*task.holdout, *more])
        contest = self._contest(task, task.longest, demand)
        return [*proposals, *search_parts(engine, task), *look_parts(engine, contest)]

    def prove(
        self, task: Task, demand: Demand | None, outcome: CommandOutcome
    ) -> tuple[Task, Kept, CommandOutcome]:
        """Choose a version on the train cases, and prove it on the hold-out.

        Returns:
            The task with the text that was chosen, the proposed cases, and the outcome.
        """
        engine, review, kept = self.engine, self.review, Kept()
        review.old = task.text if self.content is not None else ""
        if demand is not None:
            kept = keep_cases(engine, demand)
            self.drafts.write("cases.json", json.dumps({"cases": kept.entries}, indent=2) + "\n")
            answered = (case for case in kept.cases if case.checks)
            cases = [*task.train, *task.holdout, *answered]
            train, holdout = split_cases(cases)
            skill = replace(task.skill, cases=tuple(cases))
            task = replace(task, skill=skill, train=train, holdout=holdout)
            outcome = outcome.with_cases(cases, {**outcome.dropped, **kept.dropped})
            if reason := _too_few_reason(train, holdout):
                return task, kept, replace(outcome, decision="not shown", reason=reason)
        result = search(engine, task, self.drafts)
        outcome = replace(outcome, candidates=result.log)
        review.cases = [*task.train, *task.holdout]
        review.add("old" if self.content is not None else "draft", result.current.results)
        if reason := self._why_not_proved(result):
            return task, kept, replace(outcome, decision="not shown", reason=reason)
        best = result.best.text
        review.new = best
        if result.best is not result.current:
            review.add("new", result.best.results)
        self.drafts.write("SKILL.md", best)
        confirmed = confirm(engine, self._contest(task, best, demand))
        self.confirmed.append(confirmed)
        review.add("new", confirmed.results[::2])
        review.add("old" if self.content is not None else "without", confirmed.results[1::2])
        return replace(task, text=best), kept, confirmed.add_to(outcome)

    def offer(self, old: str, best: Task, kept: Kept) -> bool:
        """Show the change, and return whether the user agreed and it was written."""
        say, skill, content = self.engine.say, best.skill, self.content
        assert content is not None
        say(*marked_diff(old, best.text, (*best.train, *best.holdout), name="SKILL.md"))
        say(*listed_code(best.text, old))
        # The marks are written first, so that an interrupted command cannot leave too high a lift.
        changes = [*_case_file_changes(best, kept, say)]
        file = skill.folder / "SKILL.md"
        changes.append(Change(file=file, old=content, new=encoded_like(content, best.text)))
        if (output := self.settings.output) is None:
            return self.engine.terms.consent.apply_changes("Write this to", changes, say)
        save_copy(skill.folder, output, changes, say, self.drafts)
        return True

    def log(self, folder: Path, command: str) -> None:
        """Write what was proved into the history."""
        for confirmed in self.confirmed if not self.settings.description else ():
            log_confirmation(self.engine, confirmed, folder, command)

    def _why_not_proved(self, result: SearchResult) -> str:
        """Return why no version is compared on the hold-out, "" if one is."""
        if self.content is None:
            return ""
        if result.current.passes == result.current.runs:
            return "the skill passes every train case: nothing to learn from, add harder cases"
        if result.best is result.current:
            return "no candidate passed more train cases, so the hold-out was not used"
        return ""

    def _contest(self, task: Task, text: str, demand: Demand | None) -> Contest:
        return Contest(
            new=task.version(text),
            old=None if self.content is None else task.version(task.text),
            cases=task.holdout,
            runs=task.runs,
            description=task.description,
            task=self.settings.wishes.task if demand else "",
        )

    def _power_lines(self, task: Task) -> Iterator[str]:
        """Yield the chance to detect a gain, for each spread of the cases' pass rates."""
        look = upcoming_look(self.engine, self._contest(task, task.text, None)).look
        students, cases = self.engine.terms.students, len(task.holdout)
        runs = min(runs_of(student, task.runs, chooses=task.description) for student in students)
        yield f"look {look} at this hold-out, level {alpha_of_look(look):.2g}; true gains are found"
        for name, spread in SPREADS.items():
            chances = (
                power(
                    gain, cases=cases, runs=runs, look=look, students=len(students), spread=spread
                )
                for gain in (0.1, 0.2, 0.3)
            )
            shown = ", ".join(f"+{10 * n} in {chance:.0%}" for n, chance in enumerate(chances, 1))
            yield f"  {shown} of looks, where most cases {name}"


def _case_file_changes(task: Task, kept: Kept, say: Say) -> Iterator[Change]:
    """Yield the change that adds cases to a ``skill_meta.json`` and marks its train cases."""
    file = task.skill.folder / CASE_FILE
    if task.description or (file != task.skill.case_file and not kept.entries):
        return
    old = read_content(file)
    new = with_cases(old, kept.entries) if kept.entries else old
    assert new is not None
    new = with_train_marks(new, [case.id for case in task.train])
    if new != old:
        say(
            f"{CASE_FILE}: {len(kept.entries)} new cases; {len(task.train)} train cases have "
            '"train": true and leave the lift'
        )
        yield Change(file=file, old=old, new=new)


def _too_few_reason(train: Sequence[Case], holdout: Sequence[Case]) -> str:
    """Return why the cases are too few to decide, "" if they are enough."""
    if len(holdout) < MIN_HELD_OUT:
        return (
            f"only {len(holdout)} of {len(train) + len(holdout)} cases are held out, and a "
            f"decision needs {MIN_HELD_OUT}: add about {missing_cases(len(holdout))} more, or let "
            "'pytest-upskill cases' propose some"
        )
    return "" if train else "no train case: add cases, or let 'pytest-upskill cases' propose some"
