"""``generate``: a new skill with its cases, its lift on held-out cases, and proof."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from pytest_upskill import CASE_FILE
from pytest_upskill.formats.skill import Skill
from pytest_upskill.repository.atomic_write import write_whole
from pytest_upskill.teacher.cases import told
from pytest_upskill.teacher.generation_log import log_generation
from pytest_upskill.teacher.generation_plan import (
    DRAFTS,
    SAVED,
    Order,
    asking,
    bare_skill,
    demand_of,
    generation_parts,
)
from pytest_upskill.teacher.proof.confirmation import Confirmation, Contest, confirm
from pytest_upskill.teacher.proof.holdout import MIN_HELD_OUT, split
from pytest_upskill.teacher.proof.ledger import Ledger
from pytest_upskill.teacher.proposals.case_file import with_cases
from pytest_upskill.teacher.proposals.keep import Kept, keep_cases
from pytest_upskill.teacher.versions.draft import Draft, check_name, draft_prompt, read_draft
from pytest_upskill.teacher.versions.edits import Refused
from pytest_upskill.teacher.versions.search import Task, search, version
from pytest_upskill.teacher.work.conclusion import DRY_RUN, conclude
from pytest_upskill.teacher.work.consent import check_sources
from pytest_upskill.teacher.work.decision import Decision, Drafts
from pytest_upskill.teacher.work.engine import Engine, TeacherError
from pytest_upskill.teacher.work.picture import figures_of
from pytest_upskill.teacher.work.place import place
from pytest_upskill.teacher.work.plan import check_models, plan_lines
from pytest_upskill.teacher.work.prompts import marked_sources
from pytest_upskill.teacher.work.reply import BadReply, whole_text

UNMEASURED = "--no-eval: nothing was measured"
"""The reason of a decision without cases."""


def generate(engine: Engine, order: Order) -> Decision:
    """Write a skill and its cases, measure it, and save it if it helps; write ``decision.json``.

    Raises:
        TeacherError: The command cannot run as it was given.
    """
    drafts = Drafts(
        order.terms.state / "drafts",
        order.name,
        "generate",
        order.task,
        *order.terms.names,
        *(source.text for source in order.sources),
    )
    if order.output:
        check_name(order.name)
        order.folder(order.name, drafts.folder)
    start = order.terms.interrupted("generate", order.name)
    students = order.terms.students if order.measured else ()
    check_models(engine, order.terms.teacher, students, order.terms.limits)
    if not order.terms.dry_run:
        check_sources(engine, order.sources, order.terms.teacher.label, order.terms.consent, drafts)
    work = _Generation(engine, order, drafts)
    return conclude(engine, drafts, start, work.decided, dry_run=order.terms.dry_run)


class _Generation:
    """One run of ``generate``."""

    def __init__(self, engine: Engine, order: Order, drafts: Drafts) -> None:
        self._engine = engine
        self._order = order
        self._drafts = drafts

    def decided(self, decision: Decision) -> Decision:
        """Return the decision after everything was run."""
        order, say = self._order, self._engine.say
        for line in plan_lines(
            self._engine, generation_parts(self._engine, order, self._drafts.folder)
        ):
            say(line)
        if order.terms.dry_run:
            return replace(decision, reason=DRY_RUN)
        try:
            draft = self._draft()
            decision = replace(decision, skill=draft.name)
            folder = order.folder(draft.name, self._drafts.folder)
        except (Refused, TeacherError) as error:
            say(str(error))
            return replace(decision, decision="refused", reason=str(error))
        self._drafts.write("SKILL.md", draft.text)
        say(f"draft: {draft.name}, {len(draft.text.encode()) // 4:,} tokens")
        if not order.measured:
            self._save(folder, draft.text, None)
            return replace(decision, decision="not shown", reason=UNMEASURED, applied=True)
        skill = bare_skill(self._drafts.folder, draft.name, draft.text)
        kept = keep_cases(self._engine, demand_of(order, skill))
        for line in told(kept):
            say(line)
        self._drafts.write(CASE_FILE, with_cases(None, kept.entries).decode())
        return self._proved(replace(skill, cases=kept.cases), kept, folder, decision)

    def _draft(self) -> Draft:
        """Ask for a draft until one is not refused.

        Raises:
            Refused: The last one was refused too.
        """
        order, refused = self._order, ""
        known = f"{order.task}\n{marked_sources(order.sources)}"
        for attempt in range(DRAFTS):
            prompt = draft_prompt(order.task, order.sources, name=order.name, refused=refused)
            trial = asking(order, self._drafts.folder, prompt, run=attempt)
            ((answer,),) = self._engine.run([trial], "draft")
            assert answer.completion is not None
            self._drafts.write(f"draft-{attempt + 1}-reply.md", answer.completion.text)
            try:
                return read_draft(whole_text(answer.completion), known, name=order.name)
            except (BadReply, Refused) as error:
                refused = str(error)
                self._engine.say(f"draft {attempt + 1}: refused: {refused}")
        raise Refused(f"no usable draft: {refused}")

    def _proved(self, skill: Skill, kept: Kept, folder: Path, decision: Decision) -> Decision:
        """Choose a version on train cases, and measure its lift on the others."""
        order, say = self._order, self._engine.say
        train, holdout = split(skill.cases)
        decision = replace(
            decision,
            train=tuple(case.id for case in train),
            holdout=tuple(case.id for case in holdout),
            kept=tuple(case.id for case in kept.cases),
            dropped=kept.dropped,
        )
        if len(holdout) < MIN_HELD_OUT or not train:
            reason = (
                f"only {len(holdout)} of {len(skill.cases)} cases are held out, and a decision "
                f"takes {MIN_HELD_OUT}: give more sources, or keep more cases with --count"
            )
            say(reason)
            return replace(decision, decision="not shown", reason=reason)
        task = Task(
            skill=skill,
            text=skill.text,
            train=tuple(train),
            holdout=tuple(holdout),
            teacher=order.terms.teacher,
            students=order.terms.students,
            steps=order.steps,
        )
        found = search(self._engine, task, self._drafts.write)
        best = found.best.text
        self._drafts.write("SKILL.md", best)
        confirmed = self._confirmed(task, best)
        decision = replace(
            decision,
            candidates=found.log,
            look=confirmed.look,
            p=confirmed.acceptance.p,
            alpha=confirmed.acceptance.alpha,
            figures=confirmed.figures,
        )
        reason = _explained(confirmed)
        if not confirmed.acceptance.accepted:
            say(f"{reason}: not saved, the draft stays in {place(self._drafts.folder)}")
            return replace(decision, decision="not shown", reason=reason)
        if self._save(folder, best, kept):
            log_generation(self._engine, confirmed, folder, skill.name, order.terms.state)
        return replace(decision, decision="accepted", reason=reason, applied=True)

    def _confirmed(self, task: Task, text: str) -> Confirmation:
        """Measure a version on the cases that are held out, and print its lift."""
        contest = Contest(
            new=version(task.skill, text),
            old=None,
            cases=task.holdout,
            students=task.students,
            runs=self._order.runs,
        )
        ledger = Ledger(self._order.terms.state / "looks")
        confirmed = confirm(self._engine, ledger, contest)
        for line in figures_of(
            confirmed.counts, "baseline", "with skill", unicode=self._engine.unicode
        ):
            self._engine.say(line)
        return confirmed

    def _save(self, folder: Path, text: str, kept: Kept | None) -> bool:
        """Make the skill's folder whole, and return True; or False if an earlier run made it."""
        made = not folder.exists()
        try:
            if made:
                self._drafts.write(SAVED, text)
                folder.parent.mkdir(parents=True, exist_ok=True)
                with TemporaryDirectory(prefix=".", dir=folder.parent) as parent:
                    new = Path(parent, folder.name)
                    write_whole(new / "SKILL.md", text.encode(), mode=0o666)
                    if kept is not None:
                        write_whole(new / CASE_FILE, _case_file(kept), mode=0o666)
                    new.rename(folder)
        except OSError as error:
            raise TeacherError(f"{folder}: cannot be written: {error.strerror}") from None
        self._engine.say(f"Saved to {folder if folder.is_absolute() else f'./{folder}'}")
        return made


def _case_file(kept: Kept) -> bytes:
    """Return the case file of a new skill, with its train cases marked."""
    train = {case.id for case in split(kept.cases)[0]}
    entries = [
        {**entry, "train": True} if entry["id"] in train else entry for entry in kept.entries
    ]
    return with_cases(None, entries)


def _explained(confirmed: Confirmation) -> str:
    """Return the decision about a new skill in one sentence."""
    acceptance = confirmed.acceptance
    figures = f"p = {acceptance.p:.2g}, level {acceptance.alpha:.2g} at look {confirmed.look}"
    if acceptance.accepted:
        return f"helps on held-out cases: {figures}"
    worse = f"hurts {', '.join(acceptance.worse)}" if acceptance.worse else ""
    return f"{worse or 'not shown to help'}: {figures}"
