"""The commands: a version of a skill, chosen on train cases, proved on others; and cases alone.

1. The most that can be requested is printed (`plan`). Without a skill, the teacher writes a draft
   (`search`). Without enough cases, it proposes some (`cases`).
2. The text of its question decides whether a case is a train case or held out (`acceptance`).
3. The teacher proposes versions; the one that passes most train cases is chosen (`search`).
4. It is compared once with the old version, or with no skill, by fresh runs on the held-out cases
   (`confirmation`). A ledger counts these looks (`acceptance`): each one is stricter.
5. A new skill is saved; a version of an existing one is written if the user agrees (`files`).
"""

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from pytest_upskill import CASE_FILE
from pytest_upskill.answers.resources import WorkError
from pytest_upskill.cases.skill import Skill
from pytest_upskill.project.files import MAX_TEXT_BYTES, display_path, read_file
from pytest_upskill.project.grouping import grouped
from pytest_upskill.project.messages import counted, listed
from pytest_upskill.teacher import files
from pytest_upskill.teacher.acceptance import MIN_HELD_OUT, SHARE, eligible_cases, split_cases
from pytest_upskill.teacher.additions import listed_code
from pytest_upskill.teacher.cases import Kept
from pytest_upskill.teacher.confirmation import confirm, log_confirmation
from pytest_upskill.teacher.engine import Engine, NotShown
from pytest_upskill.teacher.files import Change
from pytest_upskill.teacher.outcome import NO_EVAL, CommandOutcome, Work
from pytest_upskill.teacher.plan import plan_lines
from pytest_upskill.teacher.search import bare_trials, request_draft, search
from pytest_upskill.teacher.versions import Settings, Task


def generate(engine: Engine, settings: Settings) -> CommandOutcome:
    """Write a skill and its cases, measure it, and save it if it helps; write ``decision.json``.

    Raises:
        WorkError: The command cannot run as it was given.
    """
    if settings.output:
        settings.new_folder(settings.name)
    work = Work.start(engine, settings, "generate", settings.name)
    decided = engine.drafts.read("decision.json")
    if decided and (name := json.loads(decided)["skill"]):
        settings.new_folder(name)  # refused before anything is requested once it is saved
    longest = _start(settings.longest_skill(), settings, is_new=True)

    def run() -> None:
        skill, sources = request_draft(engine, settings)
        folder = settings.new_folder(skill.name)
        work.note(skill=skill.name)
        if not engine.students:  # --no-eval
            engine.say(*listed_code(skill.text), files.save_copy(skill.folder, folder))
            step = f"'pytest-upskill cases {folder}' proposes cases, which can measure it"
            return work.note(decision="not shown", reason=NO_EVAL, applied=True, next_step=step)
        task = _start(skill, replace(settings, sources=sources), is_new=True)
        return _improve(work, task, b"", folder)

    return work.run(plan_lines(engine, longest), run)


def refine(engine: Engine, skill: Skill, settings: Settings) -> CommandOutcome:
    """Search for a better version, prove it, and offer it; write ``decision.json``.

    Raises:
        WorkError: The command cannot run as it was given.
    """
    file = skill.folder / "SKILL.md"
    content = read_file(file, MAX_TEXT_BYTES)
    text = content.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    work = Work.start(engine, settings, "refine", skill.name, str(file), text)
    settings = replace(settings, comments=engine.drafts.comments(skill.name))
    cases, left_out = eligible_cases(engine, skill.cases, description=settings.description)
    task = _start(replace(skill, text=text, cases=tuple(cases)), settings)
    work.note_cases(cases, left_out)
    engine.say(*_left_out_lines(left_out))
    reason = _too_few_reason(task)
    if reason and not task.proposes:
        work.note(decision="refused", reason=reason)
        return work.record()
    if engine.consent.apply and settings.output is None:
        files.check_clean(file)

    plan = plan_lines(engine, task, engine.drafts.read("SKILL.md"))
    return work.run(plan, partial(_improve, work, task, content, settings.output))


def propose_cases(engine: Engine, skill: Skill, settings: Settings) -> CommandOutcome:
    """Propose, validate and offer cases and queries; write ``decision.json``.

    Raises:
        WorkError: The command cannot run as it was given.
    """
    file = skill.folder / CASE_FILE
    content = files.read_content(file)
    work = Work.start(engine, settings, "cases", skill.name, str(skill.folder))
    if engine.consent.apply:
        files.check_clean(file)
    task = Task(skill=skill, settings=settings)

    def run() -> None:
        work.note_cases(work.keep_cases(task), work.kept.dropped)
        work.note(decision="not shown", reason=str(work.kept))
        if entries := work.kept.entries:
            engine.say(*_case_lines(entries))
            change = Change(file=file, old=content, new=files.with_cases(content, entries))
            work.note(decision="accepted", applied=apply_changes(engine, "Add them to", [change]))

    return work.run(plan_lines(engine, task), run)


def _start(skill: Skill, settings: Settings, *, is_new: bool = False) -> Task:
    """Return what to improve, and by which cases."""
    train, holdout = split_cases(skill.cases)
    task = Task(skill=skill, settings=settings, is_new=is_new, train=train, holdout=holdout)
    return replace(task, proposes=bool(settings.count and _too_few_reason(task)))


def _with_proposed_cases(work: Work, task: Task) -> Task:
    """Return a task with the cases that the teacher proposes.

    Raises:
        NotShown: They are too few to decide.
    """
    cases = [*task.train, *task.holdout, *(case for case in work.keep_cases(task) if case.checks)]
    train, holdout = split_cases(cases)
    work.note_cases(cases, {**work.outcome.dropped, **work.kept.dropped})
    task = replace(task, train=train, holdout=holdout)
    if reason := _too_few_reason(task):
        raise NotShown(reason)
    return task


def _chosen_version(work: Work, task: Task) -> str:
    """Return the version that passes most train cases.

    Raises:
        NotShown: It is the version that the skill has already.
    """
    engine = work.engine
    bare = bare_trials(engine, task)
    work.add("without", engine.results(bare, "without the skill, for the page"))
    current, best, log = search(engine, task)
    work.note(candidates=tuple(log))
    work.add("draft" if task.is_new else "old", current.results)
    if best is not current:
        work.add("new", best.results)
    elif current.passes == current.runs and not task.is_new:
        raise NotShown("the skill passes every train case: nothing to learn from, add harder cases")
    elif not task.is_new:
        raise NotShown("no candidate passed more train cases, so the hold-out was not used")
    return best.text


def _improve(work: Work, task: Task, content: bytes, output: Path | None) -> None:
    """Choose a version of a skill, prove it, and write it if the user agrees.

    Args:
        work: The command.
        task: What to improve.
        content: Its ``SKILL.md`` as it is.
        output: The folder of a changed copy; None to change the skill itself.

    Raises:
        NotShown: There is nothing to prove.
    """
    engine, old, folder = work.engine, "" if task.is_new else task.skill.text, task.skill.folder
    work.old = old
    if task.proposes:
        task = _with_proposed_cases(work, task)
    work.cases = [*task.train, *task.holdout]
    work.new = new = _chosen_version(work, task)
    engine.drafts.write("SKILL.md", new)
    results = confirm(work, task, new)
    work.add("new", results[::2])
    work.add("without" if task.is_new else "old", results[1::2])
    if work.outcome.decision != "accepted":
        return
    if old:
        engine.say(*work.diff)
    engine.say(*listed_code(new, old))
    # The marks are written first, so that an interrupted command cannot leave too high a lift.
    changes = [*_case_file_changes(engine, task, work.kept)]
    written = files.encoded_like(content, new)
    changes.append(Change(file=folder / "SKILL.md", old=content, new=written))
    if output:
        engine.say(files.save_copy(folder, output, changes))
        review = f"read {display_path(output.absolute())}"
    elif apply_changes(engine, "Write this to", changes):
        review = "review it with 'git diff'"
    else:
        return
    log_confirmation(work, results, output or folder)
    step = f"{review}, then commit it with .upskill/looks, which count the looks"
    work.note(applied=True, next_step=step)


def _case_file_changes(engine: Engine, task: Task, kept: Kept) -> Iterator[Change]:
    """Yield the change that adds cases to a ``skill_meta.json`` and marks its train cases."""
    file = task.skill.folder / CASE_FILE
    if task.settings.description or (file != task.skill.case_file and not kept.entries):
        return
    old = files.read_content(file)
    new = files.with_cases(old, kept.entries) if kept.entries else old
    assert new is not None
    new = files.with_train_marks(new, [case.id for case in task.train])
    if new != old:
        engine.say(
            f"{CASE_FILE}: {counted(len(kept.entries), 'new case')}; {len(task.train)} train cases "
            'get "train": true, as they chose the version, and leave the lift'
        )
        yield Change(file=file, old=old, new=new)


def apply_changes(engine: Engine, action: str, changes: Sequence[Change]) -> bool:
    """Change files if the user agrees, by --apply or a typed yes; return whether they did.

    Args:
        engine: Asks, and prints what was written, or why nothing was.
        action: The question's words before the name of the last file: ``Write this to``.
        changes: The changed files; if one has uncommitted changes, there is no question.

    Raises:
        WorkError: The user agreed, but a file has changed meanwhile or cannot be written.
    """
    target, say = display_path(changes[-1].file), engine.say
    if not engine.consent.apply:
        try:
            for change in changes:
                files.check_clean(change.file)
        except WorkError as error:
            engine.say(f"nothing was changed: {error}; then the same command and --apply do it")
            return False
        if not engine.consent.ask_yes_no(f"{action} {target}?"):
            say("nothing was changed")
            return False
    files.replace_files(changes)
    say(f"written: {target}")
    return True


def _left_out_lines(left_out: Mapping[str, str]) -> Iterator[str]:
    """Yield a line for each reason why cases are left out."""
    names = grouped((reason, case) for case, reason in left_out.items())
    yield from (f"left out: {listed(found)}: {reason}" for reason, found in names.items())


def _too_few_reason(task: Task) -> str:
    """Return why the cases are too few to decide, "" if they are enough."""
    train, holdout = len(task.train), len(task.holdout)
    if holdout < MIN_HELD_OUT:
        more = math.ceil((MIN_HELD_OUT - holdout) / SHARE)
        held = f"only {holdout} of {train + holdout} cases are held out, not {MIN_HELD_OUT}"
        return f"{held}: add about {more}, or let 'pytest-upskill cases' propose some"
    return "" if train else "no train case: add cases, or let 'pytest-upskill cases' propose some"


def _case_lines(entries: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    for entry in entries:
        yield f"+ {entry['id']}: {entry['input']}"
        expected = entry.get("expected") or {"should_trigger": entry["should_trigger"]}
        yield f"    {json.dumps(expected, ensure_ascii=False)}"
