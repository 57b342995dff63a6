"""``generate``: a new skill with its cases, its lift on held-out cases, and proof."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from pytest_upskill import CASE_FILE
from pytest_upskill.completions.workplace import WorkError
from pytest_upskill.formats.skill import Skill
from pytest_upskill.repository.atomic_write import write_whole
from pytest_upskill.teacher.generation_log import log_generation
from pytest_upskill.teacher.generation_plan import (
    DRAFTS,
    SAVED,
    Order,
    bare_skill,
    demand_of,
    generation_parts,
    question,
)
from pytest_upskill.teacher.proof.confirmation import Confirmation, Contest, confirm
from pytest_upskill.teacher.proof.decision import UNMEASURED, Decision, conclude
from pytest_upskill.teacher.proof.holdout import MIN_HELD_OUT, split
from pytest_upskill.teacher.proposals.keep import keep_cases
from pytest_upskill.teacher.versions.draft import Draft, check_name, read_draft
from pytest_upskill.teacher.versions.search import Task, search, version
from pytest_upskill.teacher.work.drafts import Drafts
from pytest_upskill.teacher.work.engine import Engine
from pytest_upskill.teacher.work.files import place, with_cases, with_train_marks
from pytest_upskill.teacher.work.marks import marked_sources
from pytest_upskill.teacher.work.plan import check_models, plan_lines
from pytest_upskill.teacher.work.reply import Refused, whole_text


def generate(engine: Engine, order: Order) -> Decision:
    """Write a skill and its cases, measure it, and save it if it helps; write ``decision.json``.

    Raises:
        WorkError: The command cannot run as it was given.
    """
    terms = engine.terms
    given = (order.task, *terms.names, *(source.text for source in order.sources))
    drafts = terms.drafts(order.name, "generate", *given)
    if order.output:
        check_name(order.name)
        order.folder(order.name, drafts.folder)
    check_models(engine)
    terms.check_sources(order.sources, drafts, engine.say)
    plan = plan_lines(engine, *generation_parts(engine, order, drafts.folder))
    start = Decision(command="generate", skill=order.name)
    return conclude(engine, drafts, start, plan, _Generation(engine, order, drafts).decided)


@dataclass(frozen=True, slots=True)
class _Generation:
    """One run of ``generate``."""

    engine: Engine
    order: Order
    drafts: Drafts

    def decided(self, decision: Decision) -> Decision:
        """Return the decision after everything was run."""
        say = self.engine.say
        try:
            draft = self._draft()
            decision = replace(decision, skill=draft.name)
            folder = self.order.folder(draft.name, self.drafts.folder)
        except (Refused, WorkError) as error:
            say(str(error))
            return replace(decision, decision="refused", reason=str(error))
        self.drafts.write("SKILL.md", draft.text)
        say(f"draft: {draft.name}, {len(draft.text.encode()) // 4:,} tokens")
        if not self.engine.terms.students:  # --no-eval
            self._save(folder, draft.text)
            return replace(decision, decision="not shown", reason=UNMEASURED, applied=True)
        skill = bare_skill(self.drafts.folder, draft.name, draft.text)
        kept = keep_cases(self.engine, demand_of(self.order, skill))
        case_file = with_cases(None, kept.entries)
        say(*kept.told())
        self.drafts.write(CASE_FILE, case_file.decode())
        decision = decision.about(kept.cases, kept.dropped)
        return self._proved(replace(skill, cases=tuple(kept.cases)), case_file, folder, decision)

    def _draft(self) -> Draft:
        """Ask for a draft until one is not refused.

        Raises:
            Refused: The last one was refused too.
        """
        order, refused = self.order, ""
        known = f"{order.task}\n{marked_sources(order.sources)}"
        for attempt in range(DRAFTS):
            asked = question(self.engine, order, self.drafts.folder, refused=refused, run=attempt)
            reply = self.engine.ask(asked, "draft")
            self.drafts.write(f"draft-{attempt + 1}-reply.md", reply.text)
            try:
                return read_draft(whole_text(reply), known, name=order.name)
            except Refused as reason:
                refused = str(reason)
                self.engine.say(f"draft {attempt + 1}: refused: {refused}")
        raise Refused(f"no usable draft: {refused}")

    def _proved(self, skill: Skill, case_file: bytes, folder: Path, decision: Decision) -> Decision:
        """Choose a version on train cases, and measure its lift on the others."""
        engine, order = self.engine, self.order
        train, holdout = split(skill.cases)
        if len(holdout) < MIN_HELD_OUT or not train:
            reason = (
                f"only {len(holdout)} of {len(skill.cases)} cases are held out, and a decision "
                f"takes {MIN_HELD_OUT}: give more sources, or keep more cases with --count"
            )
            engine.say(reason)
            return replace(decision, decision="not shown", reason=reason)
        task = Task(skill=skill, text=skill.text, train=train, holdout=holdout, steps=order.steps)
        found = search(engine, task, self.drafts)
        best = found.best.text
        self.drafts.write("SKILL.md", best)
        contest = Contest(new=version(skill, best), old=None, cases=holdout, runs=order.runs)
        confirmed = confirm(engine, contest)
        decision = confirmed.decided(replace(decision, candidates=found.log), _explained(confirmed))
        if decision.decision != "accepted":
            engine.say(
                f"{decision.reason}: not saved, the draft stays in {place(self.drafts.folder)}"
            )
            return decision
        if self._save(folder, best, with_train_marks(case_file, decision.train)):
            log_generation(engine, confirmed, folder, skill.name)
        return replace(decision, applied=True)

    def _save(self, folder: Path, text: str, case_file: bytes = b"") -> bool:
        """Make the skill's folder whole, and return True; or False if an earlier run made it."""
        made = not folder.exists()
        try:
            if made:
                self.drafts.write(SAVED, text)
                folder.parent.mkdir(parents=True, exist_ok=True)
                with TemporaryDirectory(prefix=".", dir=folder.parent) as parent:
                    new = Path(parent, folder.name)
                    write_whole(new / "SKILL.md", text.encode(), mode=0o666)
                    if case_file:
                        write_whole(new / CASE_FILE, case_file, mode=0o666)
                    new.rename(folder)
        except OSError as error:
            raise WorkError(f"{folder}: cannot be written: {error.strerror}") from None
        self.engine.say(f"Saved to {folder if folder.is_absolute() else f'./{folder}'}")
        return made


def _explained(confirmed: Confirmation) -> str:
    """Return the decision about a new skill in one sentence."""
    if confirmed.acceptance.accepted:
        return f"helps on held-out cases: {confirmed.evidence}"
    worse = ", ".join(confirmed.acceptance.worse)
    return f"{f'hurts {worse}' if worse else 'not shown to help'}: {confirmed.evidence}"
