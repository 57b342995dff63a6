"""The commands: a version of a skill, chosen on train cases, proved on others; and cases alone.

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
from collections.abc import Iterator
from dataclasses import replace

from pytest_upskill import CASE_FILE
from pytest_upskill.cases.skill import Case, Skill
from pytest_upskill.project.files import MAX_TEXT_BYTES, read_file
from pytest_upskill.teacher.additions import listed_code, marked_diff
from pytest_upskill.teacher.cases import BATCH, Kept, demand_for, keep_cases, plan_parts
from pytest_upskill.teacher.confirmation import (
    confirm,
    log_confirmation,
    look_parts,
    upcoming_look,
)
from pytest_upskill.teacher.draft import draft_parts, request_draft
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
from pytest_upskill.teacher.outcome import NO_EVAL, CommandOutcome, Review, record, run_and_record
from pytest_upskill.teacher.search import Candidate, Task, search, search_parts
from pytest_upskill.teacher.terms import Say
from pytest_upskill.teacher.versions import Settings
from pytest_upskill.trials.trial import runs_of

_LONGEST_CASE = Case(id="case", input="x" * 1000, checks=())


def generate(engine: Engine, settings: Settings) -> CommandOutcome:
    """Write a skill and its cases, measure it, and save it if it helps; write ``decision.json``.

    Raises:
        WorkError: The command cannot run as it was given.
    """
    terms, review = engine.terms, Review()
    drafts = terms.drafts(settings.name, "generate", settings)
    settings.check_output()
    check_models(engine)
    terms.check_sources(settings.sources, drafts, engine.say)
    parts = [*draft_parts(engine, settings)]
    if terms.students:
        parts += _parts(engine, _start(settings.longest_skill(), settings, is_new=True))

    def run(outcome: CommandOutcome) -> CommandOutcome:
        skill, sources = request_draft(engine, settings, drafts)
        folder = settings.new_folder(skill.name)
        outcome = replace(outcome, skill=skill.name)
        if not terms.students:  # --no-eval
            engine.say(*listed_code(skill.text))
            save_copy(skill.folder, folder, [], engine.say)
            return replace(outcome, decision="not shown", reason=NO_EVAL, applied=True)
        task = _start(skill, replace(settings, sources=sources), is_new=True)
        task, kept, outcome = _prove(engine, drafts, review, task, outcome)
        if outcome.decision == "accepted" and review.confirmed:
            engine.say(*listed_code(review.new))
            content = with_train_marks(with_cases(None, kept.entries), outcome.train)
            changes = [
                Change(file=skill.folder / CASE_FILE, old=None, new=content),
                Change(file=skill.folder / "SKILL.md", old=None, new=review.new.encode()),
            ]
            save_copy(skill.folder, folder, changes, engine.say)
            log_confirmation(engine, review.confirmed, folder, "generate")
            outcome = replace(outcome, applied=True)
        return outcome

    start = CommandOutcome(command="generate", skill=settings.name)
    review.plan = [*plan_lines(engine, *parts)]
    return run_and_record(engine, drafts, start, review, run)


def refine(engine: Engine, skill: Skill, settings: Settings) -> CommandOutcome:
    """Search for a better version, prove it, and offer it; write ``decision.json``.

    Raises:
        WorkError: The command cannot run as it was given.
    """
    terms, file, review = engine.terms, skill.folder / "SKILL.md", Review()
    content = read_file(file, MAX_TEXT_BYTES)
    text = content.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    drafts = terms.drafts(skill.name, "refine", settings, str(file), text)
    settings = replace(settings, comments=drafts.comments(skill.name))
    cases, left_out = eligible_cases(engine, skill.cases, description=settings.description)
    skill = replace(skill, text=text, cases=tuple(cases))
    task = _start(skill, settings, is_new=False)
    start = CommandOutcome(command="refine", skill=skill.name).with_cases(cases, left_out)
    engine.say(*(f"left out: {case}: {reason}" for case, reason in left_out.items()))
    reason = _too_few_reason(task)
    if reason and task.demand is None:
        engine.say(reason)
        return record(engine, drafts, replace(start, decision="refused", reason=reason), review)
    if terms.consent.apply and settings.output is None:
        check_clean(file)
    check_models(engine)
    terms.check_sources(settings.sources, drafts, engine.say)

    def run(outcome: CommandOutcome) -> CommandOutcome:
        proved, kept, outcome = _prove(engine, drafts, review, task, outcome)
        if outcome.decision == "accepted" and _offer(engine, proved, review, kept, content):
            if review.confirmed and not settings.description:
                folder = settings.output or skill.folder
                log_confirmation(engine, review.confirmed, folder, "refine")
            outcome = replace(outcome, applied=True)
        return outcome

    review.plan = [*_plan(engine, task)]
    return run_and_record(engine, drafts, start, review, run)


def propose_cases(engine: Engine, skill: Skill, settings: Settings) -> CommandOutcome:
    """Propose, validate and offer cases and queries; write ``decision.json``.

    Raises:
        WorkError: The command cannot run as it was given.
    """
    terms, file = engine.terms, skill.folder / CASE_FILE
    content = read_content(file)
    drafts = terms.drafts(skill.name, "cases", settings, str(skill.folder))
    check_models(engine)
    if terms.consent.apply:
        check_clean(file)
    terms.check_sources(settings.sources, drafts, engine.say)
    demand = demand_for(skill, settings, is_new=False)

    def propose(outcome: CommandOutcome) -> CommandOutcome:
        kept = keep_cases(engine, demand)
        drafts.write("cases.json", json.dumps({"cases": kept.entries}, indent=2) + "\n")
        outcome = replace(outcome.with_cases(kept.cases, kept.dropped), reason=str(kept))
        if not kept.cases:
            return replace(outcome, decision="not shown")
        engine.say(*_case_lines(kept))
        change = Change(file=file, old=content, new=with_cases(content, kept.entries))
        applied = terms.consent.apply_changes("Add them to", [change], engine.say)
        return replace(outcome, decision="accepted", applied=applied)

    review = Review(plan=[*plan_lines(engine, *plan_parts(engine, demand))])
    start = CommandOutcome(command="cases", skill=skill.name)
    return run_and_record(engine, drafts, start, review, propose)


def _start(skill: Skill, settings: Settings, *, is_new: bool) -> Task:
    """Return what to improve, and which cases to propose first."""
    train, holdout = split_cases(skill.cases)
    task = Task(
        skill=skill,
        text=skill.text,
        train=train,
        holdout=holdout,
        settings=settings,
        is_new=is_new,
    )
    if not settings.count or not _too_few_reason(task):
        return task
    demand = demand_for(skill, settings, is_new=is_new)
    return replace(task, demand=replace(demand, held_out=MIN_HELD_OUT - len(holdout)))


def _plan(engine: Engine, task: Task) -> Iterator[str]:
    """Yield the most answers that can be requested, and the gains that a look would detect."""
    yield f"{task.skill.name}: {len(task.train)} train cases, {len(task.holdout)} held out"
    yield from plan_lines(engine, *_parts(engine, task))
    if task.demand is None:
        yield from _power_lines(engine, task)


def _parts(engine: Engine, task: Task) -> list[Part]:
    """Return the most requests, and their purposes."""
    proposals = list[Part]()
    if task.demand is not None:
        proposals = [*plan_parts(engine, task.demand)]
        number = task.demand.rounds() * BATCH
        more = [replace(_LONGEST_CASE, id=f"case-{number}") for number in range(number)]
        task = replace(task, train=[*task.train, *more], holdout=[*task.holdout, *more])
    return [*proposals, *search_parts(engine, task), *look_parts(engine, task)]


def _prove(
    engine: Engine,
    drafts: Drafts,
    review: Review,
    task: Task,
    outcome: CommandOutcome,
) -> tuple[Task, Kept, CommandOutcome]:
    """Choose a version on the train cases, and prove it on the hold-out.

    Returns:
        The task with all its cases, the proposed cases, and the outcome; the review gets the rest.
    """
    kept = Kept()
    review.old = "" if task.is_new else task.text
    if task.demand is not None:
        kept = keep_cases(engine, task.demand)
        drafts.write("cases.json", json.dumps({"cases": kept.entries}, indent=2) + "\n")
        answered = (case for case in kept.cases if case.checks)
        cases = [*task.train, *task.holdout, *answered]
        train, holdout = split_cases(cases)
        task = replace(task, train=train, holdout=holdout)
        outcome = outcome.with_cases(cases, {**outcome.dropped, **kept.dropped})
        if reason := _too_few_reason(task):
            return task, kept, replace(outcome, decision="not shown", reason=reason)
    current, best, log = search(engine, task, drafts)
    outcome = replace(outcome, candidates=tuple(log))
    review.cases = [*task.train, *task.holdout]
    review.add("draft" if task.is_new else "old", current.results)
    if not task.is_new and (reason := _why_not_proved(current, best)):
        return task, kept, replace(outcome, decision="not shown", reason=reason)
    review.new = best.text
    if best is not current:
        review.add("new", best.results)
    drafts.write("SKILL.md", review.new)
    review.confirmed = confirm(engine, task, review.new)
    review.add("new", review.confirmed.results[::2])
    review.add("without" if task.is_new else "old", review.confirmed.results[1::2])
    return task, kept, outcome.with_confirmation(review.confirmed)


def _why_not_proved(current: Candidate, best: Candidate) -> str:
    """Return why no version of an existing skill is compared on the hold-out, "" if one is."""
    if current.passes == current.runs:
        return "the skill passes every train case: nothing to learn from, add harder cases"
    if best is current:
        return "no candidate passed more train cases, so the hold-out was not used"
    return ""


def _offer(engine: Engine, task: Task, review: Review, kept: Kept, content: bytes) -> bool:
    """Show the change of a ``SKILL.md``, and return whether the user agreed and it was written."""
    old, new = review.old, review.new
    engine.say(*marked_diff(old, new, (*task.train, *task.holdout), name="SKILL.md"))
    engine.say(*listed_code(new, old))
    # The marks are written first, so that an interrupted command cannot leave too high a lift.
    changes = [*_case_file_changes(task, kept, engine.say)]
    file = task.skill.folder / "SKILL.md"
    changes.append(Change(file=file, old=content, new=encoded_like(content, new)))
    if (output := task.settings.output) is None:
        return engine.terms.consent.apply_changes("Write this to", changes, engine.say)
    save_copy(task.skill.folder, output, changes, engine.say)
    return True


def _power_lines(engine: Engine, task: Task) -> Iterator[str]:
    """Yield the chance to detect a gain, for each spread of the cases' pass rates."""
    look = upcoming_look(engine, task, task.text).look
    students, cases, settings = engine.terms.students, len(task.holdout), task.settings
    runs = min(runs_of(each, settings.runs, chooses=settings.description) for each in students)
    yield f"look {look} at this hold-out, level {alpha_of_look(look):.2g}; true gains are found"
    for name, spread in SPREADS.items():
        chances = (
            power(gain, cases=cases, runs=runs, look=look, students=len(students), spread=spread)
            for gain in (0.1, 0.2, 0.3)
        )
        shown = ", ".join(f"+{10 * n} in {chance:.0%}" for n, chance in enumerate(chances, 1))
        yield f"  {shown} of looks, where most cases {name}"


def _case_file_changes(task: Task, kept: Kept, say: Say) -> Iterator[Change]:
    """Yield the change that adds cases to a ``skill_meta.json`` and marks its train cases."""
    file = task.skill.folder / CASE_FILE
    if task.settings.description or (file != task.skill.case_file and not kept.entries):
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


def _too_few_reason(task: Task) -> str:
    """Return why the cases are too few to decide, "" if they are enough."""
    train, holdout = len(task.train), len(task.holdout)
    if holdout < MIN_HELD_OUT:
        return (
            f"only {holdout} of {train + holdout} cases are held out, and a decision needs "
            f"{MIN_HELD_OUT}: add about {missing_cases(holdout)} more, or let "
            "'pytest-upskill cases' propose some"
        )
    return "" if train else "no train case: add cases, or let 'pytest-upskill cases' propose some"


def _case_lines(kept: Kept) -> Iterator[str]:
    for entry in kept.entries:
        yield f"+ {entry['id']}: {entry['input']}"
        expected = entry.get("expected") or {"should_trigger": entry["should_trigger"]}
        yield f"    {json.dumps(expected, ensure_ascii=False)}"
